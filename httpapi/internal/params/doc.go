// Package params parses the query parameters of the data operations and the id in a path. The resulting Query shares no
// memory with the request. All problems of a request are reported at once. For an unknown name, the message suggests
// the most similar known name.
//
//	params.go  the table of parameters: names, grammars, parse functions, and the operations that allow or require them
//	query.go   the Query, and parsing of some values
//	decode.go  percent-decoding
//	reader.go  parsing of a request: Table.Read
package params
