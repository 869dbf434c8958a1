// Package process describes the environment of a command: arguments, variables, streams, clock, random numbers. It
// opens the input file of a command: no read of a pipe blocks after the command's context has ended, and devices are
// refused, because some have no end.
//
// The program uses the real ones. Tests use their own, so that they can run every command inside the test's process.
//
// Only package cmd reads the real environment and clock.
package process
