// Package terminal writes the output of commands: numbers and times, tables, and logs as text or JSON. ErrWriter keeps
// the first error of a writer. LogQueue lets a node log without blocking on the reader of its log.
//
// Text from outside the program cannot control the terminal or forge a log line. Attributes named like secrets are
// redacted in logs.
package terminal
