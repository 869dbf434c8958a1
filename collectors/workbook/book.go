package workbook

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// Errors of Open and Rows wrap one of these errors, and say what was found and where.
var (
	ErrNotWorkbook = errors.New("no workbook")        // another kind of document, or an unsupported format of workbooks
	ErrDamaged     = errors.New("damaged workbook")   // truncated, corrupt, encrypted or otherwise invalid
	ErrTooLarge    = errors.New("workbook too large") // a limit is exceeded
	ErrNoSheet     = errors.New("no such sheet")      // Rows was called with a name that is not one of Sheets
)

const shownBytes = 16 // number of first bytes that the error for another document shows

// Book is an open workbook. It is immutable and safe for concurrent use.
type Book struct {
	sheets []string
	rows   func(sheet int) ([][]string, error) // reads sheets[sheet]; XLSX and XLS have their own functions
}

// Open reads the names of the sheets and the shared strings. Book.Rows reads the sheets later, so body must not change.
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

// Sheets returns the names of all worksheets in the order of the file, including hidden worksheets. Chart sheets and
// macro sheets are omitted.
func (b *Book) Sheets() []string { return slices.Clone(b.sheets) }

// Rows reads a sheet: rows[i][j] is the text of the cell in row i+1 and column j+1. A row ends with its last
// non-empty cell, and the rows end with the last non-empty row.
func (b *Book) Rows(sheet string) ([][]string, error) {
	index := slices.Index(b.sheets, sheet)
	if index < 0 {
		return nil, fmt.Errorf("%w: %q is not one of %q", ErrNoSheet, sheet, b.sheets)
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
