// Package input is a file that a user named, which may be standard input or a
// named pipe and never end. Opening one never waits, and reading ends with the
// context: a goroutine does the waiting.
//
// Devices and the like, some of which have no end, are refused.
package input
