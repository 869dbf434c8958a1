package source

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tasard/tasard/collectors/values"
	"github.com/tasard/tasard/collectors/workbook"
	"github.com/tasard/tasard/engine"
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

// sheetReader reads the rows of a sheet of a workbook. The rows must be in the order of their dates.
type sheetReader struct {
	*parser
	headings *sheetHeadings
	fields   []*fieldQuote // the quotes that a row may contain, with their columns
	days     []HistoryDay
	rows     int // number of rows with a quote
	invalid  int // number of rows with a quote that were skipped as invalid
}

// readSheet reads every row with a date and a quote. The quotes of the last day go to r.newest, those of all earlier
// days to r.history.
func (r *parser) readSheet(rows [][]string) {
	headings, failure := headingsOf(rows, r.page.Extract.Sheet)
	if r.fail(failure) {
		return
	}
	sheet := &sheetReader{parser: r, headings: headings, fields: fieldQuotes(r.page.Extract.Fields)}
	sheet.checkHeadings()
	for i, cells := range rows[headings.row+1:] {
		sheet.readRow(cells, headings.row+i+2)
	}
	if sheet.invalid*100 > sheet.rows*badRowsPercent {
		r.failf(Layout, "%d of %d rows are invalid%s", sheet.invalid, sheet.rows, r.notes.summary())
	}
	if r.requirePrice(); r.failure != nil {
		return
	}
	newest := len(sheet.days) - 1
	r.newest, r.history = sheet.days[newest].Observations, sheet.days[:newest]
}

// checkHeadings adds a note for each missing column of the definition. Some columns may be missing, because editions of
// a workbook differ. checkHeadings fails if all are missing.
func (s *sheetReader) checkHeadings() {
	present := 0
	fields := s.page.Extract.Fields
	for i := range fields {
		if s.headings.has(fields[i].At) {
			present++
			continue
		}
		s.notes.add("no column, or more than one, has the heading %s", quoted(fields[i].At))
	}
	if present == 0 {
		s.failf(Layout, "none of the %d columns exists%s", len(fields), s.notes.summary())
	}
}

// readRow reads one row. rowNumber counts from 1.
func (s *sheetReader) readRow(cells []string, rowNumber int) {
	spec := s.page.Extract.Sheet
	year, month, day := s.headings.text(cells, spec.Year), s.headings.text(cells, spec.Month), s.headings.text(cells, spec.Day)
	date := values.DateOfCells(year, month, day)
	if date.IsZero() && (month == "" || day == "") {
		return // a row with a footnote, or an empty row
	}
	quotes := s.quotesOf(cells, date)
	if len(quotes) == 0 {
		return
	}
	s.rows++
	lastDate := engine.Date(0)
	if len(s.days) > 0 {
		lastDate = s.days[len(s.days)-1].Date
	}
	switch {
	case date.IsZero():
		s.skipRow(rowNumber, "its date %s does not exist", quoted(strings.Join([]string{year, month, day}, " ")))
	case date < lastDate:
		s.skipRow(rowNumber, "its date %s is before %s", date, lastDate)
	case date == lastDate:
		if !slices.Equal(quotes, s.days[len(s.days)-1].Observations) {
			s.skipRow(rowNumber, "its values for %s differ from the row before", date)
		}
	default:
		s.days = append(s.days, HistoryDay{Date: date, Observations: quotes})
	}
}

func (s *sheetReader) skipRow(rowNumber int, format string, args ...any) {
	s.invalid++
	s.notes.add("row %d is skipped: %s", rowNumber, fmt.Sprintf(format, args...))
}

// quotesOf returns the quotes of one row; date is the date in the row.
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
