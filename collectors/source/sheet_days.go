package source

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tasard/tasard/engine"
)

// sheetReader reads the rows of a sheet, which must be in order of their days.
type sheetReader struct {
	*parser
	headings *sheetHeadings
	fields   []*fieldQuote
	days     []HistoryDay
	rows     int // with a date or values
	bad      int // rows that are invalid
}

// readSheet reads every row with a date and a value. The newest day is current, earlier days are history.
func (r *parser) readSheet(rows [][]string) {
	headings := headingsOf(rows, r.page.Extract.Sheet)
	sheet := &sheetReader{parser: r, headings: headings, fields: fieldQuotes(r.page.Extract.Fields)}
	sheet.checkHeadings()
	for i, cells := range rows[headings.row+1:] {
		sheet.readRow(cells, headings.row+i+2)
	}
	if sheet.bad*100 > sheet.rows*badRowsPercent {
		failf(Layout, "%d of %d rows are invalid%s", sheet.bad, sheet.rows, r.notes.summary())
	}
	r.requirePrice()
	newest := len(sheet.days) - 1
	r.newest, r.history = sheet.days[newest].Observations, sheet.days[:newest]
}

// checkHeadings requires one of the columns and notes the missing ones: editions of a workbook differ.
func (s *sheetReader) checkHeadings() {
	there := 0
	fields := s.page.Extract.Fields
	for i := range fields {
		if s.headings.has(fields[i].At) {
			there++
			continue
		}
		s.notes.add("no column, or more than one, has the heading %s", quoted(fields[i].At))
	}
	if there == 0 {
		failf(Layout, "none of the %d columns exists%s", len(fields), s.notes.summary())
	}
}

// readRow reads one row. number counts from 1.
func (s *sheetReader) readRow(cells []string, number int) {
	want := s.page.Extract.Sheet
	year, month, day := s.headings.text(cells, want.Year), s.headings.text(cells, want.Month), s.headings.text(cells, want.Day)
	date := sheetDate(year, month, day)
	if date.IsZero() && (month == "" || day == "") {
		return // a footnote, or an empty row
	}
	quotes := s.quotesOf(cells, date)
	if len(quotes) == 0 {
		return
	}
	s.rows++
	last := engine.Date(0)
	if len(s.days) > 0 {
		last = s.days[len(s.days)-1].Date
	}
	switch {
	case date.IsZero():
		s.skipRow(number, "its date %s does not exist", quoted(strings.Join([]string{year, month, day}, " ")))
	case date < last:
		s.skipRow(number, "its date %s is before %s", date, last)
	case date == last:
		if !slices.Equal(quotes, s.days[len(s.days)-1].Observations) {
			s.skipRow(number, "its values for %s differ from the row before", date)
		}
	default:
		s.days = append(s.days, HistoryDay{Date: date, Observations: quotes})
	}
}

func (s *sheetReader) skipRow(number int, format string, args ...any) {
	s.bad++
	s.notes.add("row %d is skipped: %s", number, fmt.Sprintf(format, args...))
}

// quotesOf returns the quotes of one row, none if it has no value.
func (s *sheetReader) quotesOf(cells []string, date engine.Date) []engine.Observation {
	row := &sheetScope{headings: s.headings, cells: cells}
	s.date = date
	for _, fields := range s.fields {
		if date < fields.from {
			continue
		}
		buy, sell := s.fieldSides(row, fields)
		s.addQuote(s.keyOf(fields.target), buy, sell)
	}
	return s.takeObservations()
}

// sheetDate returns the date of three cells, zero if there is no such day. The month is a Spanish name or a number.
func sheetDate(year, month, day string) engine.Date {
	number := monthNumber(month)
	if number == "" && allDigits(month) {
		number = month
	}
	return dateOf(year, number, day)
}
