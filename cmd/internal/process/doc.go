// Package process describes the environment of a command: arguments, variables, streams, clock, random numbers.
//
// The program uses the real environment and clock; only package cmd reads them. Tests use their own, so that they can
// run every command inside the test's process.
package process
