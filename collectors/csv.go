package collectors

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
)

// csvParser parses the lines of a CSV file. Every line is a record: a quoted field must not contain a line break. So a
// missing quote spoils only one line, and the numbers of the other lines stay right.
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

// readHeader parses the header: the names of all columns, in any order.
func (p *csvParser) readHeader(line []byte) *LineError {
	cells, problem := p.split(line)
	if problem != nil {
		return problem
	}
	if !slices.Equal(slices.Sorted(slices.Values(cells)), slices.Sorted(slices.Values(columnNames))) {
		return &LineError{Found: "the header " + quoted(string(line)), Want: "exactly the columns " + columns + ", in any order, separated by commas"}
	}
	for _, cell := range cells {
		c, _ := parseColumn(cell)
		p.header = append(p.header, c)
	}
	return nil
}
