// Package params reads what a request asks for: the query parameters of every data operation, and the id in a path,
// into a Query that owns its memory. It knows their grammar, their names and the operations that take them, and
// tells all problems of a request at once, with the nearest name that is known. It knows nothing of HTTP beyond the
// bytes of a path and a query string, and nothing of answers.
//
//	params.go   the table: each parameter's name, grammar, and the operations that know or need it
//	query.go    the grammar of each value
//	decode.go   percent-encoding, and how far one name is from another
//	reading.go  one request: Table.Read
package params
