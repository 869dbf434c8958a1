// Package params parses the query parameters of the data operations (all of /v1 except /v1/account), and the id in a
// path. A Query shares no memory with the request. All problems of a request are reported at once. The message for an
// unknown name suggests the most similar known name. Begin reading at Table.Read.
//
//	params.go  the table of parameters: names, grammars, parse functions, and the operations that allow or require them
//	reader.go  Table.Read, which parses a request into a Query; percent-decoding
package params
