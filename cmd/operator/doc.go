// Package operator implements tasard admin and tasard ping. They call a running node through its management socket.
// Package httpapi/admin defines the operations; this package has a command for each, with help, flags and a table of
// the result.
//
// Results are printed as tables, or with --json as the node's JSON. Control characters are removed from other people's
// text, such as names of API keys.
//
// To add an operation, write its command in the file of its subject, and its table in print.go.
package operator
