// Package input opens the input file of a command: a regular file, standard input or a named pipe.
//
// Reads of a pipe or of standard input may block forever. Open therefore never blocks, and reads of File.Reader fail
// when a context ends.
//
// Devices are refused, because some have no end.
package input
