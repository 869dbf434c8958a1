// Package exit defines the exit codes of tasard and errors with a code (Errorf,
// Wrap). Code derives the code of other errors from their cause. The codes follow
// sysexits.h, so that a service manager knows when a restart can help.
//
// Packages below cmd do not know exit codes.
package exit
