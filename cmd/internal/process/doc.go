// Package process holds everything that a command uses of its environment:
// arguments, variables, streams, clock, random numbers. The program uses the real
// ones, a test its own, so that every command runs in a test as in a shell.
//
// Only package cmd reads the real environment and clock.
package process
