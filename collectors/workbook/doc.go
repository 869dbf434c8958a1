// Package workbook reads the cells of untrusted workbooks as text: XLSX, and the XLS of Excel 97 to 2003 (BIFF8).
//
//	book, err := workbook.Open(body)     // errors.Is: ErrNotWorkbook, ErrDamaged, ErrTooLarge
//	rows, err := book.Rows(book.Sheets()[0])
//	rows[2][3]                           // row 3, column D
//
// # Text of a cell
//
//   - Number: the shortest decimal text without an exponent that parses to the same IEEE double. 58.950000000000003
//     becomes 58.95, but 58.949999999999996 is another double and stays. The display format of the cell is ignored.
//   - Text: unchanged.
//   - Boolean: TRUE or FALSE. Error: its name, such as #N/A.
//   - Date: a number of days since 1899-12-30, or since 1904-01-01 in some files.
//   - Formula: its result when the file was saved.
//   - Merged cells: the top left cell has the text, the others are empty.
//
// # Promises
//
//   - A sheet is read completely or not at all. Two values for one cell, a missing shared string, an invalid number and
//     a truncated part are errors.
//   - No input causes a panic or an endless loop. Memory is bounded by limits.go and, for OLE containers, by ole.go.
//   - In XLSX, checksums detect a changed digit. XLS has no checksums.
//
// # Why not excelize
//
// The tests write workbooks with the library excelize and compare cells with it. But excelize accepts damaged files
// silently: it stops where the XML is invalid, leaves a cell empty if its shared string is missing, and moves cells
// that are out of order to other columns. A sheet without its last rows would look like a sheet without updates, and a
// rate in another column is a wrong rate.
//
// # Files
//
//	book.go                          Open, Book
//	limits.go                        limits of size
//	grid.go, number.go               cells; numbers as text
//	xlsx.go, xlsx_part.go, xlsx_cells.go                  XLSX: zip package, XML, cells
//	ole.go, biff_records.go, biff_strings.go, xls.go      XLS: OLE container, BIFF8 records, strings, cells
package workbook
