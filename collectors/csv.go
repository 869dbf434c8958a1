package collectors

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// csvParser parses the lines of a CSV file. Every line is a record: a quoted field ends in its line. A missing quote
// thus costs one line, and all other line numbers stay right.
type csvParser struct {
	line   bytes.Reader // line for the next read of csv
	csv    *csv.Reader
	header []column // in the order of the file
}

func newCSVParser() *csvParser {
	p := &csvParser{}
	p.csv = csv.NewReader(&p.line)
	p.csv.FieldsPerRecord, p.csv.ReuseRecord = -1, true
	return p
}

// split returns the fields of a line. They are valid until the next call.
func (p *csvParser) split(line []byte) ([]string, *LineError) {
	p.line.Reset(line)
	cells, err := p.csv.Read()
	if err == nil {
		return cells, nil
	}
	problem := &LineError{Found: err.Error(), Want: `fields with quotes in quotes and each quote doubled, as "a ""b"""`}
	if parseErr := (*csv.ParseError)(nil); errors.As(err, &parseErr) {
		problem.Found = fmt.Sprintf("%v at position %d", parseErr.Err, parseErr.Column)
	}
	return nil, problem
}

func (p *csvParser) parse(line []byte, values *fields) *LineError {
	cells, problem := p.split(line)
	switch {
	case problem != nil:
		return problem
	case len(cells) != len(p.header):
		return &LineError{Found: fmt.Sprintf("%d fields", len(cells)), Want: fmt.Sprintf("%d, as in the header", len(p.header))}
	}
	for i, cell := range cells {
		values[p.header[i]] = shared(cell)
	}
	return nil
}

// readHeader reads the header, the first non-blank line.
func (r *Reader) readHeader(p *csvParser) error {
	for {
		line, long, err := r.lines.next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("read the header of %s: %w: the file is empty, want the columns %s", r.name, io.ErrUnexpectedEOF, columns)
		}
		if err != nil {
			return fmt.Errorf("read the header of %s: %w", r.name, err)
		}
		if !long && isBlankLine(line) {
			continue
		}
		problem := lineProblem(line, long)
		if problem == nil {
			var cells []string
			if cells, problem = p.split(line); problem == nil {
				p.header, problem = columnsOf(cells)
			}
		}
		if problem != nil {
			return *r.locate(problem)
		}
		return nil
	}
}

// columnsOf returns the columns named in the header, in its order.
func columnsOf(cells []string) ([]column, *LineError) {
	var order []column
	var problems []string
	for _, cell := range cells {
		col, known := parseColumn(cell)
		switch {
		case !known:
			problems = append(problems, "has the unknown "+quoted(cell))
		case slices.Contains(order, col):
			problems = append(problems, "repeats "+cell)
		default:
			order = append(order, col)
		}
	}
	for c := range columnCount {
		if !slices.Contains(order, c) {
			problems = append(problems, "lacks "+c.String())
		}
	}
	if len(problems) == 0 {
		return order, nil
	}
	const shown = 6
	if len(problems) > shown {
		problems = append(problems[:shown], "…")
	}
	return nil, &LineError{Found: "a header that " + strings.Join(problems, ", "), Want: "exactly the columns " + columns + ", in any order, separated by commas"}
}
