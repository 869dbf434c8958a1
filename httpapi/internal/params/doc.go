// Package params parses the query parameters of the data operations (all of /v1 except /v1/account), and the id in a
// path. A Query shares no memory with the request. All problems of a request are reported at once. The message for an
// unknown name suggests the most similar known name. Begin reading at Table.Read.
//
// The Table has the names, grammars and parse functions, and the operations that allow or require a parameter.
package params
