// Package workbook reads the cells of untrusted XLSX workbooks as text. Only this package imports the library excelize.
// It must not call the library's writing functions, which would add 10 MB to the program.
//
//	book, err := workbook.Open(body)
//	rows, err := book.Rows(book.Sheets()[0])
//	rows[2][3]                           // row 3, column D
//
// The text of a number is the shortest decimal without an exponent that parses to the same IEEE double. So
// 58.950000000000003 becomes 58.95, but 58.949999999999996 is another double and stays. Display formats are ignored.
// The text of a formula is its result when the file was saved. The text of merged cells is in the top left one.
//
// # Promises
//
//   - A sheet is read completely or not at all: damaged files and cells out of order are errors.
//   - No input causes a panic. Memory is bounded by the limits in workbook.go.
package workbook
