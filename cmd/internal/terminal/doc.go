// Package terminal writes the output of commands: formatted numbers and instants,
// tables, a writer that remembers its first error, and logs as text or JSON.
//
// Foreign text can't control a terminal or forge a log line, and values of
// attributes with the names of secrets are not logged.
package terminal
