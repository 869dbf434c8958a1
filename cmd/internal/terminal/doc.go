// Package terminal writes the output of commands: numbers and times, tables, and logs as text or JSON. ErrWriter
// keeps the first error of a writer. LogQueue keeps a node from waiting for the reader of its log.
//
// Text from outside the program cannot control the terminal or forge a log line. Logs do not have the values of
// attributes that are named like secrets.
package terminal
