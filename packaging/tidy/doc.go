// Package tidy has only tests. They read the files of the whole repository and hold them against its rules: what may import what
// (layout_test.go), how code is written (tidy_test.go), and that the documents agree with the code (readme_test.go). Each check has a
// control, a text that it must report.
//
// They are apart from the tests of the root because they read every file: any change runs these again, and only these. They need
// nothing but the files, no git and no go command.
package tidy
