// Package workbook reads the cells of untrusted workbooks as text: XLSX, and the XLS of Excel 97 to 2003 (BIFF8).
//
//	book, err := workbook.Open(body)     // errors.Is: ErrNotWorkbook, ErrDamaged, ErrTooLarge
//	rows, err := book.Rows(book.Sheets()[0])
//	rows[2][3]                           // row 3, column D
//
// # Cells
//
//   - A number is the shortest decimal text without an exponent that parses to the same IEEE double:
//     58.950000000000003 becomes 58.95, but 58.949999999999996 does not. The display format of the cell is ignored.
//   - A text is unchanged. An empty text is an empty cell.
//   - A boolean is TRUE or FALSE, an error its name (#N/A).
//   - A date is a number: days since 1899-12-30, or since 1904-01-01 in some files.
//   - A formula is the result that it had when the file was saved.
//   - The first of several merged cells has the value, the others are empty.
//
// # Promises
//
// A sheet is read completely or not at all. Two values for one cell, a missing shared string, an invalid number and a
// truncated part are errors. No input causes a panic or an endless loop, or needs much more memory than its cells;
// limits.go has the limits, ole.go those of OLE containers.
//
// XLSX parts have checksums. XLS has none, so a changed digit is not noticed.
//
// # Why not excelize
//
// The library excelize writes the workbooks of the tests, and cells are compared with it. It is not used on untrusted
// input: it stops without an error where the XML is invalid, leaves a cell empty if its shared string is missing, and
// moves cells that are out of order to other columns. A sheet without its last rows looks as if it was not updated, and
// a rate in another column is a wrong rate.
//
// # Files
//
//	book.go                          Open, Book
//	limits.go                        limits of size
//	grid.go, number.go               cells, numbers as text
//	xlsx.go, xlsx_part.go, xlsx_cells.go                  XLSX: package, XML, cells
//	ole.go, biff_records.go, biff_strings.go, xls.go      XLS: OLE container, BIFF8 records, strings, cells
package workbook
