package source

import (
	"errors"
	"slices"
	"strings"

	"github.com/tasard/tasard/collectors/workbook"
)

// Limits of a sheet.
const (
	headingRowsMost = 30 // titles and notes stand above the headings, but not more rows than these
	badRowsPercent  = 1  // more rows that can't be right mean that the sheet has changed
)

// extractSheet reads a workbook with one row a day.
// sheetRows are the cells of the sheet with this normalised name; "" = the first.
func sheetRows(body []byte, name string) [][]string {
	book, err := workbook.Open(body)
	if err != nil {
		failSheet(err)
	}
	sheets := book.Sheets()
	index := slices.IndexFunc(sheets, func(sheet string) bool { return name == "" || Normalise(sheet) == Normalise(name) })
	if index < 0 {
		fail(Layout, "no sheet is called %s; there are %s", quoted(name), quoted(strings.Join(sheets, ", ")))
	}
	rows, err := book.Rows(sheets[index])
	if err != nil {
		failSheet(err)
	}
	return rows
}

func failSheet(err error) {
	detail := "the workbook can't be read: " + err.Error()
	if errors.Is(err, workbook.ErrNoWorkbook) {
		detail = "want a workbook: " + err.Error()
	}
	panic(&Failure{Kind: WrongContent, Detail: detail, Cause: err})
}

// sheetHeadings is where the columns are.
type sheetHeadings struct {
	row              int
	year, month, day int
	columns          map[string]int // by normalised heading
}

// headingsOf finds the row of headings by the three that make the date; above it stand titles. Each must stand there once.
func headingsOf(rows [][]string, want *Sheet) *sheetHeadings {
	for i, row := range rows[:min(len(rows), headingRowsMost)] {
		columns := map[string]int{}
		for j, text := range row {
			heading := Normalise(text)
			if _, twice := columns[heading]; twice {
				columns[heading] = -1
				continue
			}
			columns[heading] = j
		}
		h := &sheetHeadings{row: i, columns: columns}
		var year, month, day bool
		h.year, year = h.column(want.Year)
		h.month, month = h.column(want.Month)
		h.day, day = h.column(want.Day)
		if year && month && day {
			return h
		}
	}
	fail(Layout, "none of the first %d rows has the headings %s, %s and %s once each",
		headingRowsMost, quoted(want.Year), quoted(want.Month), quoted(want.Day))
	return nil
}

// column is where a heading stands; false when it is missing or stands twice.
func (h *sheetHeadings) column(heading string) (int, bool) {
	column, known := h.columns[Normalise(heading)]
	return column, known && column >= 0
}

// sheetScope is one row of a sheet.
type sheetScope struct {
	headings *sheetHeadings
	cells    []string
}

func (s *sheetScope) texts(place *Place) []found {
	column, known := s.headings.column(place.At)
	if !known || cellAt(s.cells, column) == "" {
		return nil
	}
	return []found{{text: cellAt(s.cells, column), form: cell}}
}

func cellAt(cells []string, column int) string {
	if column >= len(cells) {
		return ""
	}
	return collapse(cells[column])
}
