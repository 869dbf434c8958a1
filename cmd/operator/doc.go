// Package operator is tasard admin and tasard ping, which call a running node
// through its management socket. The operations are defined in httpapi/admin; here
// each has a command with its help, its flags and the table of its answer.
//
// Without --json answers are tables; with it they are the node's own JSON. Foreign
// text (names of keys, details of sources) is printed without control characters.
//
// To add an operation, write its command in the file of its subject, and its table
// in print.go.
package operator
