// Package exit defines the exit codes of tasard, and errors that have an exit code (Errorf, Wrap). Code returns the
// exit code of any error.
//
// The codes follow sysexits.h, so that a service manager knows when a restart can help. Only package cmd and the
// packages below it know exit codes.
package exit
