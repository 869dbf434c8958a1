package source

import (
	"slices"
	"strings"

	"github.com/tasard/tasard/collectors/values"
	"github.com/tasard/tasard/collectors/workbook"
)

// Limits of a sheet.
const (
	headingRowsMax = 30 // the row with the headings of the columns must be among the first 30 rows
	badRowsPercent = 1  // maximum percentage of invalid rows; a sheet with more has changed and is not read
)

// sheetRows returns the cells of the sheet with the given name, or of the first sheet if the name is "". Names are
// compared like labels.
func sheetRows(body []byte, name string) ([][]string, *Failure) {
	unreadable := func(err error) *Failure {
		return &Failure{Kind: WrongContent, Detail: "the workbook can't be read: " + err.Error(), Cause: err}
	}
	book, err := workbook.Open(body)
	if err != nil {
		return nil, unreadable(err)
	}
	sheets := book.Sheets()
	index := slices.IndexFunc(sheets, func(sheet string) bool {
		return name == "" || values.NormaliseLabel(sheet) == values.NormaliseLabel(name)
	})
	if index < 0 {
		return nil, Failf(Layout, "there is no sheet %s; the sheets are %s", quoted(name), quoted(strings.Join(sheets, ", ")))
	}
	rows, err := book.Rows(sheets[index])
	if err != nil {
		return nil, unreadable(err)
	}
	return rows, nil
}

// sheetHeadings is the row with the headings of the columns, such as the names of currencies.
type sheetHeadings struct {
	row     int            // index of the row
	columns map[string]int // column of each normalised heading; -1 = the heading occurs twice
}

// headingsOf finds the row of headings: the first row in which the headings for year, month and day occur exactly once
// each.
func headingsOf(rows [][]string, spec *Sheet) (*sheetHeadings, *Failure) {
	for i, row := range rows[:min(len(rows), headingRowsMax)] {
		h := &sheetHeadings{row: i, columns: map[string]int{}}
		for j, text := range row {
			heading := values.NormaliseLabel(text)
			if _, exists := h.columns[heading]; exists {
				j = -1
			}
			h.columns[heading] = j
		}
		if h.has(spec.Year) && h.has(spec.Month) && h.has(spec.Day) {
			return h, nil
		}
	}
	return nil, Failf(Layout, "none of the first %d rows has the headings %s, %s and %s once each",
		headingRowsMax, quoted(spec.Year), quoted(spec.Month), quoted(spec.Day))
}

// has reports whether a heading occurs exactly once.
func (h *sheetHeadings) has(heading string) bool {
	column, known := h.columns[heading]
	return known && column >= 0
}

// text returns the text of the cell below a heading, or "" if there is none.
func (h *sheetHeadings) text(cells []string, heading string) string {
	column, known := h.columns[heading]
	if !known || column < 0 || column >= len(cells) {
		return ""
	}
	return values.CollapseSpaces(cells[column])
}

// sheetScope is one row of a sheet. A locator selects a cell of the row by the heading of the column.
type sheetScope struct {
	headings *sheetHeadings
	cells    []string
}

func (s *sheetScope) texts(locator *Locator) ([]sourceText, *Failure) {
	if text := s.headings.text(s.cells, locator.At); text != "" {
		return []sourceText{{text: text, kind: numberText}}, nil
	}
	return nil, nil
}
