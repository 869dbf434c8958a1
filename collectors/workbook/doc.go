// Package workbook reads the cells of untrusted XLSX workbooks as text. It owns the library excelize, of
// which it may call only what reads: what writes keeps 10 MB of methods in the program.
//
//	book, err := workbook.Open(body)
//	rows, err := book.Rows(book.Sheets()[0])
//	rows[2][3]                           // row 3, column D
//
// The text of a number is the shortest decimal without an exponent that parses to the same IEEE double. So
// 58.950000000000003 becomes 58.95, but 58.949999999999996 is another double and stays. The display format of a cell is
// ignored, a formula has its result when the file was saved, and of merged cells the top left one has the text.
//
// # Promises
//
//   - A sheet is read completely or not at all: damaged files and cells out of order are errors.
//   - No input causes a panic. Memory is bounded by the limits in workbook.go.
package workbook
