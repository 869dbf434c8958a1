// Package jsonfile reads the JSON files that operators write: catalogues of institutions, and definitions of sources.
//
// The error lists all problems of a file, each with its place, such as pages[0].requests[1].url.
//
// Typical mistakes in handwritten files are problems too: repeated keys, unknown keys, and characters that do not
// belong into a text.
package jsonfile
