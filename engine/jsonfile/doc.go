// Package jsonfile reads the JSON files that operators write:
// catalogues of institutions, and definitions of sources.
//
// The error lists all problems of a file, each with its place, such as pages[0].requests[1].url. Repeated keys, unknown
// keys and control characters are problems too, because they are typical mistakes in handwritten files.
package jsonfile
