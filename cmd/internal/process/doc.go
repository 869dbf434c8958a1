// Package process holds the environment of a command: arguments, variables, streams, clock, random numbers.
//
// The program uses the real ones. A test has its own, so that it can run every command inside its own process.
//
// Only package cmd reads the real environment and clock.
package process
