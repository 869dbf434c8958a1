package collectors

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/tasard/tasard/engine"
)

// Limits of an observation file.
const (
	lineBytesMax           = 64 << 10 // of a line without its line end; a usual line has 90 bytes
	endlessLineBytes       = 16 << 20 // a line of more bytes ends the reading with ErrEndlessLine
	refreshObservationsMax = 10_000   // lines with the same source and time (a refresh); usually at most 3,500
	batchErrorsMax         = 256      // malformed lines in one Batch
	sourceIDMax            = 80       // characters of a source id, as for an institution id
	yearMin, yearMax       = 1900, 2999
	signatureBytes         = 4   // length of the longest file signature in binaryFormat
	sniffBytes             = 512 // first bytes of a file for sniff
	quotedBytesMax         = 64  // bytes of an invalid text quoted in an error
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
	lines   lineReader
	parse   func(line []byte, values *fields) *LineError
	pending Batch // the next Batch, still incomplete
	err     error // result of every further Next; nil = more can be read
}

// OpenObservations returns a Reader of a file, and reads the header of a CSV file. name is the file name. The error is
//   - a LineError if the header is not valid CSV or has wrong columns, or if the file is compressed or a workbook,
//   - an error that wraps io.ErrUnexpectedEOF if a CSV file is empty.
func OpenObservations(r io.Reader, name string, format Format) (*Reader, error) {
	reader := &Reader{name: name, lines: newLineReader(r)}
	if found, advice := reader.lines.binaryFormat(); found != "" {
		return nil, LineError{File: name, Line: 1, Found: found, Want: "CSV or NDJSON; " + advice}
	}
	if format == AnyFormat {
		format = cmp.Or(FormatOf(name), reader.lines.sniff())
	}
	switch format {
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

// Bytes returns the number of bytes read so far.
func (r *Reader) Bytes() int64 { return r.lines.bytes }

// Lines returns the number of lines read so far, including the header and blank lines.
func (r *Reader) Lines() int { return r.lines.number }

// Next returns the next refresh and the malformed lines before it. After batchErrorsMax malformed lines, it returns
// them without a refresh. It never sets Refresh.Complete, because a file may lack observations.
//
// After the last Batch the error is io.EOF. Any other error is a read error. Next then drops the current refresh,
// because lines of it may be missing. Every further call returns the error again.
func (r *Reader) Next() (Batch, error) {
	for r.err == nil {
		observation, problem, err := r.read()
		switch {
		case err != nil:
			return r.finish(err)
		case problem == nil && r.sameRefresh(&observation):
			problem = r.appendObservation(observation)
		case problem == nil:
			batch := r.pending
			r.startRefresh(observation)
			if len(batch.Lines)+len(batch.Errors) > 0 {
				return batch, nil
			}
		}
		if problem != nil {
			r.pending.Errors = append(r.pending.Errors, *problem)
		}
		if len(r.pending.Errors) == batchErrorsMax {
			problems := r.pending.Errors
			r.pending.Errors = nil
			return Batch{Errors: problems}, nil
		}
	}
	return Batch{}, r.err
}

// read reads the next non-blank line. It returns an observation, the error of a malformed line, or an error that ends
// the reading, such as io.EOF.
func (r *Reader) read() (Observation, *LineError, error) {
	for {
		line, long, err := r.lines.next()
		if err != nil {
			return Observation{}, nil, err
		}
		if !long && isBlankLine(line) {
			continue
		}
		observation, problem := r.parseLine(line, long)
		if problem != nil {
			problem = r.locate(problem)
		}
		return observation, problem, nil
	}
}

func (r *Reader) parseLine(line []byte, long bool) (Observation, *LineError) {
	if problem := lineProblem(line, long); problem != nil {
		return Observation{}, problem
	}
	var values fields
	if problem := r.parse(line, &values); problem != nil {
		return Observation{}, problem
	}
	observation, problem := values.observation()
	observation.Line = r.lines.number
	return observation, problem
}

// locate sets the file and line of a problem.
func (r *Reader) locate(problem *LineError) *LineError {
	problem.File, problem.Line = r.name, r.lines.number
	return problem
}

// lineProblem returns an error if a line is too long or not UTF-8 text.
func lineProblem(line []byte, long bool) *LineError {
	if long {
		return &LineError{
			Found: "a longer line",
			Want:  fmt.Sprintf("at most %d bytes", lineBytesMax),
		}
	}
	if i := invalidByteIndex(line); i >= 0 {
		return &LineError{
			Found: fmt.Sprintf("the byte 0x%02X at position %d", line[i], i+1),
			Want:  "text in UTF-8 without NUL",
		}
	}
	return nil
}

func (r *Reader) sameRefresh(o *Observation) bool {
	refresh := &r.pending.Refresh
	return len(r.pending.Lines) > 0 && refresh.SourceID == o.SourceID && refresh.ObservedAt.Equal(o.ObservedAt)
}

func (r *Reader) appendObservation(o Observation) *LineError {
	if len(r.pending.Lines) == refreshObservationsMax {
		return r.locate(&LineError{
			Found: fmt.Sprintf("one more observation of %s at %s", o.SourceID, o.ObservedAt.Format(time.RFC3339Nano)),
			Want:  fmt.Sprintf("at most %d in one refresh", refreshObservationsMax),
		})
	}
	r.pending.Refresh.Observations = append(r.pending.Refresh.Observations, o.Observation)
	r.pending.Lines = append(r.pending.Lines, o.Line)
	return nil
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
		r.err = fmt.Errorf("read %s after line %d: %w", r.name, r.lines.number, err)
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
