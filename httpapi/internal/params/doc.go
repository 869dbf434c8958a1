// Package params reads the query parameters of every data operation and the id in a path into a Query, which owns its
// memory. It has the names of the parameters, their grammar and the operations that take them, and reports all problems
// of a request at once. For an unknown name it suggests the nearest known name. Its input is the bytes of a path and a
// query string; it does not know other parts of HTTP.
//
//	params.go  the table: each parameter's name, grammar, and the operations that take or require it
//	query.go   the grammar of each value
//	decode.go  percent-encoding, and the edit distance of two names
//	reader.go  reading a request: Table.Read
package params
