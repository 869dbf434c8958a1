// Package tidy tests the files of the whole repository against its rules. It has no other code.
//
//	layout_test.go   a table of packages with their imports and sizes
//	tidy_test.go     goroutines, floating-point numbers near money, texts that no file may contain; the files
//	words_test.go    plain words in names, comments, documents, help and messages; documents agree with the code
//
// Each check has a control: a text that the check must report. golangci-lint checks the rules that it can check:
// length of functions and files, func init, sleeping, exported names without comments (.golangci.yml).
//
// The tests read every file, so any change makes them run again. Therefore they have their own package. They need
// neither git nor the go command.
package tidy
