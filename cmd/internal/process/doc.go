// Package process is what a command has of the world: arguments, environment,
// streams, clock and chance, as values. The program fills a Process with the
// real ones, a test with its own, so that every command runs in a test as it
// does in a shell.
//
// Nothing below package cmd reads the environment or the clock but through it.
package process
