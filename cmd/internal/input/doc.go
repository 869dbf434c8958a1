// Package input opens an input file that the user named. It may be standard input
// or a named pipe, whose reads may block forever: opening never blocks, and
// reading ends with a context.
//
// Devices, some of which have no end, are refused.
package input
