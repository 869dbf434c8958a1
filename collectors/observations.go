package collectors

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tasard/tasard/engine"
)

// Limits of an observation file.
const (
	lineBytesMax           = 64 << 10 // of a line; a usual line has 90 bytes
	refreshObservationsMax = 10_000   // of one refresh; further lines with the same source and time are another
	batchErrorsMax         = 256      // malformed lines in one Batch
	yearMin, yearMax       = 1900, 2999
	sniffBytes             = 512 // first bytes of a file, which show its format
	quotedBytesMax         = 64  // bytes of an invalid text quoted in an error
	byteOrderMark          = "\uFEFF"
)

// Format is the format of an observation file.
type Format string

// The formats. AnyFormat is only for reading: the file name's extension determines the format (FormatOf). With an
// unknown extension, a file that begins with { is NDJSON, any other file CSV.
const (
	AnyFormat Format = ""
	CSV       Format = "csv"
	NDJSON    Format = "ndjson"
)

// FormatOf returns the format of a file by the extension of its name (.csv, .ndjson, .jsonl), otherwise AnyFormat.
func FormatOf(name string) Format {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".csv":
		return CSV
	case ".ndjson", ".jsonl":
		return NDJSON
	}
	return AnyFormat
}

// Observation is one line of an observation file.
type Observation struct {
	engine.Observation
	SourceID   string
	ObservedAt time.Time // UTC
	Line       int       // line in the file, from 1; 0 = not from a file
}

// Batch is the result of Reader.Next: a refresh (observations of one source at one time), malformed lines, or both.
type Batch struct {
	Refresh engine.Refresh
	Lines   []int       // Lines[i] is the line number of Refresh.Observations[i]; empty = no refresh
	Errors  []LineError // malformed lines since the previous Batch
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
	pending Batch // the next Batch, still incomplete
	err     error // result of every further Next; nil = more can be read
}

// OpenObservations returns a Reader of a file, and reads the header of a CSV file. name is the file name. The error is
//   - a LineError if the header is not valid CSV or has wrong columns, or if the file is a workbook,
//   - an error that wraps io.ErrUnexpectedEOF if a CSV file is empty,
//   - an error that wraps bufio.ErrTooLong if the first line is too long.
func OpenObservations(r io.Reader, name string, format Format) (*Reader, error) {
	in := bufio.NewReaderSize(r, sniffBytes)
	if start, _ := in.Peek(2); string(start) == "PK" || string(start) == "\xD0\xCF" { // the next read returns an error again
		return nil, LineError{
			File: name, Line: 1, Found: "a workbook or a zip file",
			Want: "CSV or NDJSON; save an old .xls as .xlsx first; import a workbook as a document of its source, such as --source bcrd-usd, or save it as CSV",
		}
	}
	reader := &Reader{name: name, scanner: bufio.NewScanner(in)}
	reader.scanner.Buffer(nil, lineBytesMax)
	if format = cmp.Or(format, FormatOf(name)); format == AnyFormat {
		start, _ := in.Peek(sniffBytes)
		if bytes.HasPrefix(bytes.TrimLeft(start, byteOrderMark+" \t\r\n"), []byte{'{'}) {
			format = NDJSON
		}
	}
	switch cmp.Or(format, CSV) {
	case NDJSON:
		reader.parse = parseJSON
	case CSV:
		parser := newCSVParser()
		if err := reader.readHeader(parser); err != nil {
			return nil, err
		}
		reader.parse = parser.parse
	default:
		return nil, fmt.Errorf("open %s: unknown format %q, want %s or %s", name, format, CSV, NDJSON)
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

// Next returns the next refresh and the malformed lines before it. After batchErrorsMax malformed lines, it returns
// them without a refresh. It never sets Refresh.Complete, because a file may lack observations.
//
// After the last Batch the error is io.EOF. Any other error is a read error. Next then drops the current refresh,
// because lines of it may be missing. Every further call returns the error again.
func (r *Reader) Next() (Batch, error) {
	for r.err == nil {
		line, err := r.line()
		if err != nil {
			return r.finish(err)
		}
		observation, problem := r.parseLine(line)
		switch {
		case problem != nil:
			r.pending.Errors = append(r.pending.Errors, r.located(*problem))
		case r.sameRefresh(&observation):
			r.pending.Refresh.Observations = append(r.pending.Refresh.Observations, observation.Observation)
			r.pending.Lines = append(r.pending.Lines, observation.Line)
		default:
			batch := r.pending
			r.startRefresh(observation)
			if len(batch.Lines)+len(batch.Errors) > 0 {
				return batch, nil
			}
		}
		if len(r.pending.Errors) == batchErrorsMax {
			problems := r.pending.Errors
			r.pending.Errors = nil
			return Batch{Errors: problems}, nil
		}
	}
	return Batch{}, r.err
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

func (r *Reader) sameRefresh(o *Observation) bool {
	refresh := &r.pending.Refresh
	count := len(r.pending.Lines)
	return count > 0 && count < refreshObservationsMax && refresh.SourceID == o.SourceID && refresh.ObservedAt.Equal(o.ObservedAt)
}

func (r *Reader) startRefresh(o Observation) {
	r.pending = Batch{
		Refresh: engine.Refresh{
			SourceID: o.SourceID, ObservedAt: o.ObservedAt, Observations: []engine.Observation{o.Observation},
		},
		Lines: []int{o.Line},
	}
}

// finish returns the last Batch at io.EOF. After another error the Batch contains only malformed lines.
func (r *Reader) finish(err error) (Batch, error) {
	last := r.pending
	r.pending, r.err = Batch{}, err
	if !errors.Is(err, io.EOF) {
		r.err = fmt.Errorf("read %s after line %d: %w", r.name, r.number, err)
		if len(last.Lines) > 0 {
			r.err = fmt.Errorf("%w (the refresh that begins in line %d may be cut short and is left out)",
				r.err, last.Lines[0])
		}
		last = Batch{Errors: last.Errors}
	}
	if len(last.Lines)+len(last.Errors) == 0 {
		return Batch{}, r.err
	}
	return last, nil
}
