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
	lineBytesMax           = 64 << 10 // of a line without its end; a usual line has 90
	endlessBytesMin        = 16 << 20 // of a line; a longer one ends the reading
	refreshObservationsMax = 10_000   // of one refresh; all institutions, currencies and channels have 3,500
	batchErrorsMax         = 256      // malformed lines in one batch
	sourceIDMax            = 80       // characters, as in an institution id
	yearMin, yearMax       = 1900, 2999
	signatureBytes         = 4     // of the signatures of binary formats
	sniffBytes             = 512   // that decide the format of a file without a known extension
	foundBytesMax          = 64    // of a wrong text in an error
	internedMax            = 8_192 // strings in an interner
)

// Format is the format of an observation file.
type Format string

// The formats. AnyFormat is for reading: the extension of the file name decides (.csv; .ndjson, .jsonl), otherwise
// the first byte of the file: { begins NDJSON.
const (
	AnyFormat Format = ""
	CSV       Format = "csv"
	NDJSON    Format = "ndjson"
)

// FormatOf returns the format of a file name by its extension, AnyFormat if it has none of the known ones.
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
	Line       int       // in the file, from 1; 0 = not read from a file
}

// Batch is one step of a Reader: a refresh, malformed lines, or both.
type Batch struct {
	Refresh engine.Refresh
	Lines   []int       // Lines[i] is the line of Refresh.Observations[i]
	Errors  []LineError // malformed lines since the previous batch
}

// LineError is a malformed line: where, what was found, what is wanted.
type LineError struct {
	File        string
	Line        int    // from 1
	Column      string // column or key, "" = the line as a whole
	Found, Want string // phrases for people
}

func (e LineError) Error() string {
	where := fmt.Sprintf("%s: line %d", e.File, e.Line)
	if e.Column != "" {
		where += ", " + e.Column
	}
	return fmt.Sprintf("%s: found %s, want %s", where, e.Found, e.Want)
}

// Reader reads an observation file as refreshes, in constant memory. It is not safe for concurrent use.
type Reader struct {
	name    string
	lines   lineReader
	parse   func(line []byte, into *fields) *LineError
	strings interner
	pending Batch // the refresh that is being read
	err     error // the result of every further Next
}

// OpenObservations returns a Reader of a file. The name is used in errors, and its extension for AnyFormat. The CSV
// header is checked here: the error is a *HeaderError if its columns are wrong, a LineError if it is not CSV,
// io.ErrUnexpectedEOF (wrapped) if there is none. A compressed file or a workbook is a LineError too. An NDJSON file
// may be empty.
func OpenObservations(r io.Reader, name string, format Format) (*Reader, error) {
	reader := &Reader{name: name, lines: newLineReader(r)}
	if found := reader.lines.binaryFormat(); found != "" {
		return nil, LineError{
			File: name, Line: 1, Found: found, Want: "CSV or NDJSON; unpack it first, or save the workbook as CSV",
		}
	}
	if format == AnyFormat {
		format = cmp.Or(FormatOf(name), reader.lines.sniff())
	}
	switch format {
	case NDJSON:
		reader.parse = reader.parseJSON
	case CSV:
		header, err := reader.header()
		if err != nil {
			return nil, err
		}
		reader.parse = (&csvParser{header: header, strings: &reader.strings}).parse
	default:
		return nil, fmt.Errorf("open %s: unknown format %q, want %s or %s", name, format, CSV, NDJSON)
	}
	return reader, nil
}

// Bytes returns the number of bytes read so far, for progress.
func (r *Reader) Bytes() int64 { return r.lines.bytes }

// Lines returns the number of lines read so far, including the header and blank lines.
func (r *Reader) Lines() int { return r.lines.number }

// Next returns the next refresh with the malformed lines before it; many malformed lines come in batches without a
// refresh. No refresh is Complete, because a file may lack observations. After the last batch the error is io.EOF.
// Any other error is that of the stream, and final: the unfinished refresh is dropped, since a part of it would look
// like a source that lost quotes.
func (r *Reader) Next() (Batch, error) {
	for r.err == nil {
		observation, problem, err := r.read()
		switch {
		case err != nil:
			return r.finish(err)
		case problem == nil && r.sameRefresh(&observation):
			problem = r.appendObservation(observation)
		case problem == nil:
			done := r.pending
			r.startRefresh(observation)
			if len(done.Lines)+len(done.Errors) > 0 {
				return done, nil
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

// read returns the next line that is not blank: an observation or a problem.
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

// lineProblem returns what is wrong with a line before its values are parsed, or nil.
func lineProblem(line []byte, long bool) *LineError {
	if long {
		return &LineError{
			Found: "a longer line",
			Want:  fmt.Sprintf("at most %d bytes", lineBytesMax),
		}
	}
	if i := invalidByteAt(line); i >= 0 {
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

// finish returns the rest at the end of the file, or only the malformed lines if the stream broke.
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
