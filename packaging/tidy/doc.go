// Package tidy has only tests. They read the files of the whole repository and hold them against its rules: what each package may import
// and how large it may be (layout_test.go: one table, a row for each package), what no file may contain (tidy_test.go), and that the
// documents agree with the code (readme_test.go). Each check has a control, a text that it must report. What golangci-lint can hold it
// holds: length of functions and files, func init, sleeping, undocumented names (.golangci.yml).
//
// They are apart from other tests because they read every file: any change runs these again, and only these. They need nothing but the
// files, no git and no go command.
package tidy
