// Package cmdtest is for tests that run tasard as a child process: those of package cmd and of bench/faults.
//
//	Process      a child process: wait for lines of its output, send signals, await its exit
//	MailServer   a mail server that keeps the e-mails of a node
//	Build        a program with planted bugs
//
// Functions with a parameter testing.TB make the test fail on errors, and clean up at its end.
package cmdtest
