// Package operator is tasard admin and tasard ping: what an operator asks of a
// running node through its management socket, and the tables that answer it.
// What can be asked is the table of operations in httpapi/admin; here each
// has its command: a row with its help, its flags and what is sent.
//
// Tables are for people, --json passes on what the node says. Text that others
// chose (names of keys, details of sources) is printed without what a terminal
// would obey.
//
// Where to add one: a row in the file of its noun, under that group, and its table in print.go.
package operator
