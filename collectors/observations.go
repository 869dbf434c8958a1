package collectors

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/tasard/tasard/engine"
)

// Limits of an observation file.
const (
	lineBytesMax           = 64 << 10 // of a line; a usual line has 90 bytes
	refreshObservationsMax = 10_000   // of one refresh; further lines with the same source and time are another
	batchLinesMin          = 8192     // of one Batch, which waits for the disk once; it ends with a whole refresh
	yearMin, yearMax       = 1900, 2999
	sniffBytes             = 512 // first bytes of a file, which show its format
	quotedBytesMax         = 64  // bytes of an invalid text quoted in an error
	byteOrderMark          = "\uFEFF"
)

// Format is the format of an observation file.
type Format string

// The formats. A file that begins with { is read as NDJSON, any other file as CSV.
const (
	CSV    Format = "csv"
	NDJSON Format = "ndjson"
)

// Observation is one line of an observation file.
type Observation struct {
	engine.Observation
	SourceID   string
	ObservedAt time.Time // UTC
	Line       int       // line in the file, from 1; 0 = not from a file
}

// Batch is the result of Reader.Next: refreshes (observations of one source at one time) and malformed lines.
type Batch struct {
	Refreshes []engine.Refresh
	Lines     [][]int // Lines[i][j] is the line number of Refreshes[i].Observations[j]
	Errors    []LineError
	Count     int // number of observations
}

// LineError is the error of a malformed line.
type LineError struct {
	File        string
	Line        int    // from 1
	Column      string // column or key; "" = the whole line
	Found, Want string // phrases for the error message
}

func (e LineError) Error() string {
	location := fmt.Sprintf("%s: line %d", e.File, e.Line)
	if e.Column != "" {
		location += ", " + e.Column
	}
	return fmt.Sprintf("%s: found %s, want %s", location, e.Found, e.Want)
}

// Reader reads an observation file as refreshes, in constant memory. It is not safe for concurrent use.
type Reader struct {
	name    string
	scanner *bufio.Scanner
	number  int // of the last line read, from 1
	parse   func(line []byte, values *fields) *LineError
	ahead   *Observation // the first of the next Batch; nil = none was read
}

// OpenObservations returns a Reader of a file, and reads the header of a CSV file. name is the file name. The error is
//   - a LineError if the header is not valid CSV or has wrong columns, or if the file is a workbook,
//   - an error that wraps io.ErrUnexpectedEOF if a CSV file is empty,
//   - an error that wraps bufio.ErrTooLong if the first line is too long.
func OpenObservations(r io.Reader, name string) (*Reader, error) {
	in := bufio.NewReaderSize(r, sniffBytes)
	if start, _ := in.Peek(2); string(start) == "PK" || string(start) == "\xD0\xCF" { // the next read returns an error again
		return nil, LineError{
			File: name, Line: 1, Found: "a workbook or a zip file",
			Want: "CSV or NDJSON; save an old .xls as .xlsx first; import a workbook as a document of its source, such as --source bcrd-usd, or save it as CSV",
		}
	}
	reader := &Reader{name: name, scanner: bufio.NewScanner(in)}
	reader.scanner.Buffer(nil, lineBytesMax)
	var start []byte // from the first character on; no more is read, because a pipe may pause after a line
	for count, err := len(byteOrderMark), error(nil); len(start) == 0 && err == nil; count++ {
		start, err = in.Peek(count)
		start = bytes.TrimLeft(start, byteOrderMark+" \t\r\n")
	}
	if bytes.HasPrefix(start, []byte{'{'}) {
		reader.parse = parseJSON
		return reader, nil
	}
	parser := newCSVParser()
	reader.parse = parser.parse
	if err := reader.readHeader(parser); err != nil {
		return nil, err
	}
	return reader, nil
}

// readHeader reads the header, the first non-blank line.
func (r *Reader) readHeader(p *csvParser) error {
	line, err := r.line()
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: the file is empty, want the columns %s", io.ErrUnexpectedEOF, columns)
	}
	if err != nil {
		return fmt.Errorf("read the header of %s: %w", r.name, err)
	}
	problem := textProblem(line)
	if problem == nil {
		problem = p.readHeader(line)
	}
	if problem != nil {
		return r.located(*problem)
	}
	return nil
}

// Lines returns the number of lines read so far, including the header and blank lines.
func (r *Reader) Lines() int { return r.number }

// line returns the next line that is not blank, valid until the next call.
func (r *Reader) line() ([]byte, error) {
	for r.scanner.Scan() {
		line := r.scanner.Bytes()
		if r.number++; r.number == 1 {
			line = bytes.TrimPrefix(line, []byte(byteOrderMark))
		}
		if len(bytes.Trim(line, " \t")) > 0 {
			return line, nil
		}
	}
	if err := r.scanner.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("a line is longer than %d bytes; this is not an observation file: %w", lineBytesMax, err)
	} else if err != nil {
		return nil, err
	}
	return nil, io.EOF
}

// Next returns the next refreshes, and the malformed lines among them: at least batchLinesMin lines, or all that are
// left. It never sets Refresh.Complete, because a file may lack observations.
//
// The last Batch comes with the error io.EOF, or with a read error. After a read error the last refresh is left out,
// because lines of it may be missing.
func (r *Reader) Next() (batch Batch, err error) {
	if r.ahead != nil {
		batch.add(*r.ahead)
		r.ahead = nil
	}
	for len(batch.Errors) < batchLinesMin {
		line, err := r.line()
		if err != nil {
			return r.finish(batch, err)
		}
		observation, problem := r.parseLine(line)
		switch {
		case problem != nil:
			batch.Errors = append(batch.Errors, r.located(*problem))
		case batch.Count+len(batch.Errors) >= batchLinesMin && !batch.continues(&observation):
			r.ahead = &observation
			return batch, nil
		default:
			batch.add(observation)
		}
	}
	return batch, nil
}

// add adds an observation to the last refresh, or as a new one.
func (b *Batch) add(o Observation) {
	if !b.continues(&o) {
		b.Refreshes, b.Lines = append(b.Refreshes, engine.Refresh{SourceID: o.SourceID, ObservedAt: o.ObservedAt}), append(b.Lines, nil)
	}
	last := len(b.Refreshes) - 1
	b.Refreshes[last].Observations = append(b.Refreshes[last].Observations, o.Observation)
	b.Lines[last] = append(b.Lines[last], o.Line)
	b.Count++
}

// continues reports whether an observation belongs to the last refresh.
func (b *Batch) continues(o *Observation) bool {
	last := len(b.Refreshes) - 1
	return last >= 0 && len(b.Lines[last]) < refreshObservationsMax && b.Refreshes[last].SourceID == o.SourceID &&
		b.Refreshes[last].ObservedAt.Equal(o.ObservedAt)
}

// finish returns the last Batch, without its last refresh after a read error.
func (r *Reader) finish(batch Batch, err error) (Batch, error) {
	if errors.Is(err, io.EOF) {
		return batch, err
	}
	err = fmt.Errorf("read %s after line %d: %w", r.name, r.number, err)
	if last := len(batch.Refreshes) - 1; last >= 0 {
		err = fmt.Errorf("%w (the refresh that begins in line %d may be cut short and is left out)", err, batch.Lines[last][0])
		batch.Count -= len(batch.Lines[last])
		batch.Refreshes, batch.Lines = batch.Refreshes[:last], batch.Lines[:last]
	}
	return batch, err
}

func (r *Reader) parseLine(line []byte) (Observation, *LineError) {
	if problem := textProblem(line); problem != nil {
		return Observation{}, problem
	}
	var values fields
	if problem := r.parse(line, &values); problem != nil {
		return Observation{}, problem
	}
	observation, problem := values.observation()
	observation.Line = r.number
	return observation, problem
}

// located returns a problem with its file and line.
func (r *Reader) located(problem LineError) LineError {
	problem.File, problem.Line = r.name, r.number
	return problem
}

// textProblem returns an error if a line is not UTF-8 text.
func textProblem(line []byte) *LineError {
	if utf8.Valid(line) && bytes.IndexByte(line, 0) < 0 {
		return nil
	}
	return &LineError{Found: "bytes that are not text", Want: "text in UTF-8 without NUL"}
}
