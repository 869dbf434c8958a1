// Package jsonfile reads the JSON files that operators write: catalogues of institutions, and definitions of sources.
//
// The error has all problems of a file, each with its place, such as pages[0].requests[1].url. Repeated keys, unknown
// keys and characters that do not belong into a text are problems too: they are the mistakes of files that are written
// by hand.
package jsonfile
