package workbook

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// What can be wrong with a workbook. Every error of this package is one of these, with what was found and where.
var (
	ErrNotWorkbook = errors.New("no workbook")        // another kind of document
	ErrDamaged     = errors.New("damaged workbook")   // cut off, broken, encrypted, or against its own format
	ErrTooLarge    = errors.New("workbook too large") // beyond one of the limits in limits.go
	ErrNoSheet     = errors.New("no such sheet")      // Rows was asked for a sheet that Sheets does not name
)

const shownBytes = 16 // of a document that is no workbook, in the error

// Book is an open workbook. It is immutable, so several may read it at once.
type Book struct {
	sheets []string
	rows   func(sheet int) ([][]string, error) // reads the sheet with this index, from one of the two file formats
}

// Open reads what all sheets share; the sheets themselves are read by Rows. The book keeps body, which must not change.
func Open(body []byte) (*Book, error) {
	if len(body) > bodyBytesMax {
		return nil, tooLarge("the file has %d bytes, the most is %d", len(body), bodyBytesMax)
	}
	var (
		book *Book
		err  error
	)
	switch {
	case bytes.HasPrefix(body, []byte(zipSignature)):
		book, err = openXLSX(body)
	case bytes.HasPrefix(body, []byte(oleSignature)):
		book, err = openXLS(body)
	default:
		return nil, notWorkbook("it begins with %q", body[:min(len(body), shownBytes)])
	}
	if err == nil {
		err = book.checkNames()
	}
	if err != nil {
		return nil, err
	}
	return book, nil
}

// checkNames refuses what would make a sheet's name ambiguous.
func (b *Book) checkNames() error {
	if len(b.sheets) == 0 {
		return damaged("it has no worksheet")
	}
	for i, name := range b.sheets {
		if slices.Contains(b.sheets[:i], name) {
			return damaged("two sheets have the name %q", name)
		}
	}
	return nil
}

// Sheets names the worksheets in the order of the file, hidden ones too. Sheets that hold only a chart or macros are left out.
func (b *Book) Sheets() []string { return slices.Clone(b.sheets) }

// Rows reads a sheet: rows[i][j] is the cell in row i+1 and column j+1, as text. A row ends with its last cell that is not
// empty, and so do the rows; an empty row between others is there, with no cells.
func (b *Book) Rows(sheet string) ([][]string, error) {
	index := slices.Index(b.sheets, sheet)
	if index < 0 {
		return nil, fmt.Errorf("%w: %q is none of %q", ErrNoSheet, sheet, b.sheets)
	}
	rows, err := b.rows(index)
	if err != nil {
		return nil, fmt.Errorf("sheet %q: %w", sheet, err)
	}
	return rows, nil
}

func notWorkbook(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrNotWorkbook, fmt.Sprintf(format, args...))
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

func tooLarge(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrTooLarge, fmt.Sprintf(format, args...))
}
