// Package workbook reads workbooks from bytes that nobody vouches for: XLSX, and the XLS of Excel 97 to 2003 (BIFF8). It gives
// the cells as text and knows nothing of rates.
//
//	book, err := workbook.Open(body)     // errors.Is: ErrNotWorkbook, ErrDamaged, ErrTooLarge
//	rows, err := book.Rows(book.Sheets()[0])
//	rows[2][3]                           // row 3, column D
//
// # What a cell becomes
//
//   - A number is the shortest decimal text that reads back to the same IEEE double, without an exponent: 58.949999999999996
//     and 58.95 stay apart, 58.950000000000003 is 58.95. What the cell looks like (two decimals, a currency) does not count.
//   - A text is what it is, blanks and all. An empty text is an empty cell.
//   - A truth value is TRUE or FALSE, an error its name (#N/A).
//   - A date is a number too: the days since 1899-12-30, or since 1904-01-01 in some files. Nothing here tells it from others.
//   - A formula is the value that it had when the file was saved.
//   - Of merged cells the first has the value, the others are empty.
//
// # What is promised
//
// A sheet is read wholly or not at all. What contradicts itself is damaged, never guessed: two values for one cell, a text
// that is not in the table of texts, a number that is none, a part that ends too early. No input makes it panic or hang, and
// none makes it use much more memory than its cells need: all limits are in limits.go, those of the OLE container in
// container.go.
//
// XLSX parts have checksums, so changed bytes are found. XLS has none: a changed digit looks like any other digit.
//
// # Why XLSX is read here
//
// XLSX is read with archive/zip and encoding/xml. The library for it, excelize, writes the workbooks of the tests and is what
// their cells are compared with, but it does not fit what comes from strangers: it ends quietly where the XML breaks, leaves
// cells empty whose shared text is missing, moves cells that are not in order to other columns, and gives truth values as
// numbers when numbers are to be exact. A sheet that lost its last rows looks like one that
// was not updated; a rate in another column is a wrong rate.
//
//	book.go                            Open, Book
//	limits.go                          how much is read
//	grid.go, number.go                 cells, and the text of numbers: the only place with binary fractions
//	xlsx.go, part.go, cells.go         XLSX: package, XML, cells
//	container.go, records.go, texts.go, xls.go   XLS: OLE container, BIFF8 records, texts, cells
package workbook
