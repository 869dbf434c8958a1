// Package tidy tests the files of the whole repository against its rules. It has no other code.
//
//	layout_test.go   imports and size of each package: one table, a row for each package
//	tidy_test.go     goroutines, floats in packages of money, texts that no file may contain
//	words_test.go    plain words in names, comments, documents, help and messages
//	readme_test.go   documents agree with the code
//
// Each check has a control, a text that it must report. golangci-lint holds the rules that it can hold: length of
// functions and files, func init, sleeping, undocumented names (.golangci.yml).
//
// The tests read every file, so any change runs them again; therefore they are in a package of their own. They need
// neither git nor the go command.
package tidy
