package collectors

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// HeaderError means that a CSV header does not have exactly the columns of an observation file.
type HeaderError struct {
	File                       string
	Line                       int
	Missing, Unknown, Repeated []string
}

// Error names all wrong columns.
func (e *HeaderError) Error() string {
	var problems []string
	if len(e.Missing) > 0 {
		problems = append(problems, "lacks "+strings.Join(e.Missing, ", "))
	}
	if len(e.Unknown) > 0 {
		problems = append(problems, "has the unknown "+quotedList(e.Unknown))
	}
	if len(e.Repeated) > 0 {
		problems = append(problems, "repeats "+strings.Join(e.Repeated, ", "))
	}
	return fmt.Sprintf("%s: line %d: the header %s; want exactly the columns %s, in any order, separated by commas",
		e.File, e.Line, strings.Join(problems, " and "), columns)
}

func quotedList(names []string) string {
	const shown = 5
	parts := make([]string, 0, shown+1)
	for _, name := range names[:min(shown, len(names))] {
		parts = append(parts, quoted(name))
	}
	if len(names) > shown {
		parts = append(parts, fmt.Sprintf("%d more", len(names)-shown))
	}
	return strings.Join(parts, ", ")
}

// header reads the header, which is the first line that is not blank. It returns the columns in the order of the file.
func (r *Reader) header() ([]column, error) {
	for {
		line, long, err := r.lines.next()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("read the header of %s: %w: the file is empty, want the columns %s",
				r.name, io.ErrUnexpectedEOF, columns)
		}
		if err != nil {
			return nil, fmt.Errorf("read the header of %s: %w", r.name, err)
		}
		if !long && isBlankLine(line) {
			continue
		}
		if problem := lineProblem(line, long); problem != nil {
			return nil, *r.locate(problem)
		}
		cells, problem := splitCSV(line, nil)
		if problem != nil {
			return nil, *r.locate(problem)
		}
		return r.columnsOf(cells)
	}
}

func (r *Reader) columnsOf(cells [][]byte) ([]column, error) {
	headerErr := &HeaderError{File: r.name, Line: r.lines.number}
	order := make([]column, 0, columnCount)
	for _, cell := range cells {
		col, known := parseColumn(string(cell))
		switch {
		case !known:
			headerErr.Unknown = append(headerErr.Unknown, string(cell))
		case !slices.Contains(order, col):
			order = append(order, col)
		case !slices.Contains(headerErr.Repeated, col.String()):
			headerErr.Repeated = append(headerErr.Repeated, col.String())
		}
	}
	for c := range columnCount {
		if !slices.Contains(order, c) {
			headerErr.Missing = append(headerErr.Missing, c.String())
		}
	}
	if len(headerErr.Missing)+len(headerErr.Unknown)+len(headerErr.Repeated) > 0 {
		return nil, headerErr
	}
	return order, nil
}

// csvParser parses the lines after the header. Its interner keeps repeated texts in memory only once.
type csvParser struct {
	header  []column
	cells   [][]byte // reused for every line
	strings *interner
}

func (p *csvParser) parse(line []byte, values *fields) *LineError {
	cells, problem := splitCSV(line, p.cells[:0])
	p.cells = cells
	switch {
	case problem != nil:
		return problem
	case len(cells) != len(p.header):
		return &LineError{
			Found: fmt.Sprintf("%d fields", len(cells)),
			Want:  fmt.Sprintf("%d, as in the header", len(p.header)),
		}
	}
	for i, cell := range cells {
		values[p.header[i]] = p.strings.intern(cell)
	}
	return nil
}

// splitCSV splits a line at its commas and appends the fields to cells. A field that is not in quotes shares the memory
// of line.
func splitCSV(line []byte, cells [][]byte) ([][]byte, *LineError) {
	for {
		cell, remaining, more := bytes.Cut(line, []byte{','})
		switch {
		case bytes.HasPrefix(line, []byte{'"'}):
			end := closingQuote(line)
			if end < 0 {
				return cells, &LineError{
					Found: "the field " + quoted(string(line)) + " without a closing quote",
					Want:  "a quote at its end, in the same line",
				}
			}
			cell, remaining = bytes.ReplaceAll(line[1:end], []byte(`""`), []byte(`"`)), line[end+1:]
			if more = len(remaining) > 0; more {
				if remaining[0] != ',' {
					return cells, &LineError{Found: quoted(string(remaining)) + " after a closing quote", Want: "a comma"}
				}
				remaining = remaining[1:]
			}
		case bytes.IndexByte(cell, '"') >= 0:
			return cells, &LineError{
				Found: "a quote inside the field " + quoted(string(cell)),
				Want:  `fields with quotes in quotes and each quote doubled, as "a ""b"""`,
			}
		}
		cells = append(cells, cell)
		if !more {
			return cells, nil
		}
		line = remaining
	}
}

// closingQuote returns the position of the quote that ends the quoted field at the start of line, or -1.
func closingQuote(line []byte) int {
	for i := 1; i < len(line); i++ {
		switch {
		case line[i] != '"':
		case i+1 < len(line) && line[i+1] == '"':
			i++
		default:
			return i
		}
	}
	return -1
}
