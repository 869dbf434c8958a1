package source

import (
	"fmt"
	"strings"

	"github.com/tasard/tasard/engine"
)

// sheetReader goes through the rows of a sheet, which must come in order of their days.
type sheetReader struct {
	*reading
	headings *sheetHeadings
	fields   []*fieldQuote
	days     []Day
	rows     int // with a date or values
	bad      int // that can't be right
}

// readSheet takes every row with a date and a value: the newest day is what the source says now, those before are history.
func (r *reading) readSheet(rows [][]string) *Failure {
	headings, failure := headingsOf(rows, r.page.Extract.Sheet)
	if failure != nil {
		return failure
	}
	sheet := &sheetReader{reading: r, headings: headings, fields: fieldQuotes(r.page.Extract.Fields)}
	if failure := sheet.checkHeadings(); failure != nil {
		return failure
	}
	for i, cells := range rows[headings.row+1:] {
		if failure := sheet.readRow(cells, headings.row+i+2); failure != nil {
			return failure
		}
	}
	if sheet.bad*100 > sheet.rows*badRowsPercent {
		return Fail(Layout, "%d of %d rows can't be right%s", sheet.bad, sheet.rows, r.notes.hint())
	}
	if failure := r.judge(); failure != nil {
		return failure
	}
	newest := len(sheet.days) - 1
	r.newest, r.history = sheet.days[newest].Observations, sheet.days[:newest]
	return nil
}

// checkHeadings demands one of the columns, and tells which are missing: editions of one workbook differ.
func (s *sheetReader) checkHeadings() *Failure {
	there := 0
	fields := s.page.Extract.Fields
	for i := range fields {
		if _, known := s.headings.column(fields[i].At); known {
			there++
			continue
		}
		s.notes.add("no column, or more than one, has the heading %s", quoted(fields[i].At))
	}
	if there == 0 {
		return Fail(Layout, "none of %d columns is there%s", len(fields), s.notes.hint())
	}
	return nil
}

// readRow takes one row. number is the row's, as people count.
func (s *sheetReader) readRow(cells []string, number int) *Failure {
	year, month, day := cellAt(cells, s.headings.year), cellAt(cells, s.headings.month), cellAt(cells, s.headings.day)
	date := sheetDate(year, month, day)
	if date.IsZero() && (month == "" || day == "") {
		return nil // a footnote, or a row of blanks
	}
	quotes, failure := s.quotesOf(cells, date)
	if failure != nil || len(quotes) == 0 {
		return failure
	}
	s.rows++
	last := engine.Date(0)
	if len(s.days) > 0 {
		last = s.days[len(s.days)-1].Date
	}
	switch {
	case date.IsZero():
		s.leaveOut(number, "its date %s is none", quoted(strings.Join([]string{year, month, day}, " ")))
	case date < last:
		s.leaveOut(number, "its date %s goes back behind %s", date, last)
	case date == last:
		if !sameQuotes(quotes, s.days[len(s.days)-1].Observations) {
			s.leaveOut(number, "it says something else of %s than the row before", date)
		}
	default:
		s.days = append(s.days, Day{Date: date, Observations: quotes})
	}
	return nil
}

func (s *sheetReader) leaveOut(number int, format string, args ...any) {
	s.bad++
	s.notes.add("row %d is left out: %s", number, fmt.Sprintf(format, args...))
}

// quotesOf are the quotes of one row, none when no column of it has a value.
func (s *sheetReader) quotesOf(cells []string, date engine.Date) ([]engine.Observation, *Failure) {
	row := &sheetScope{headings: s.headings, cells: cells}
	s.date = date
	for _, fields := range s.fields {
		if date < fields.from {
			continue
		}
		buy, sell, failure := s.fieldSides(row, fields)
		if failure != nil {
			return nil, failure
		}
		if failure := s.add(s.key(fields.target), buy, sell); failure != nil {
			return nil, failure
		}
	}
	return s.take(), nil
}

func sameQuotes(a, b []engine.Observation) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// sheetDate is the day of three cells; zero when no calendar has it. The month is a Spanish name or a number.
func sheetDate(year, month, day string) engine.Date {
	number := monthNumber(month)
	if number == "" && allDigits(month) {
		number = month
	}
	return dateOf(year, number, day)
}
