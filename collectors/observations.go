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
	lineBytesMax           = 64 << 10 // bytes of a line without its end; a line of the format has about 90
	endlessBytesMin        = 16 << 20 // bytes of a line whose end nobody waits for any more
	refreshObservationsMax = 10_000   // observations of one refresh; every institution, currency and channel give 3,500
	batchErrorsMax         = 256      // malformed lines that are gathered before they are handed over
	sourceIDMax            = 80       // characters, as an institution id
	yearMin, yearMax       = 1900, 2999
	signatureBytes         = 4     // of the signatures that tell files that are no text
	sniffBytes             = 512   // from the start of a file whose name does not tell its format
	foundBytesMax          = 64    // of a refused text that are repeated in its error
	internedMax            = 8_192 // texts that a reader keeps to hand out again
)

// Format is the form of an observation file.
type Format string

// The closed list of formats. AnyFormat is for reading: the extension of the name decides (.csv; .ndjson, .jsonl), and
// where it does not, the first byte of the file: { begins NDJSON.
const (
	AnyFormat Format = ""
	CSV       Format = "csv"
	NDJSON    Format = "ndjson"
)

// FormatOf is the format that the extension of a file name promises, AnyFormat when it promises none.
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
	Line       int       // in the file it was read from, from 1; 0 for one that was made
}

// Batch is one step of a Reader. Either part may be empty, never both.
type Batch struct {
	Refresh engine.Refresh
	Lines   []int       // Lines[i] is where Refresh.Observations[i] was read
	Errors  []LineError // the malformed lines met on the way, by line
}

// LineError is a line that is no observation: where it is, what is wrong there, what belongs there.
type LineError struct {
	File        string
	Line        int    // from 1
	Column      string // the column or key, "" when the line as a whole is malformed
	Found, Want string // phrases for people
}

// Error is one sentence with all of it.
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
	pending Batch // the refresh that is being gathered
	err     error // what every further Next returns
}

// OpenObservations begins to read a file of observations; name is the file's, for errors and for its extension. A CSV
// header is read and judged here: the error is a *HeaderError when it does not name exactly the columns of the format, a
// LineError when it is no line of CSV, io.ErrUnexpectedEOF (wrapped) when there is none. A packed file or a workbook is a
// LineError too. An NDJSON file may be empty.
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

// Bytes is how much of the file has been read, for progress: part of the size of the file.
func (r *Reader) Bytes() int64 { return r.lines.bytes }

// Lines is the number of lines that have been read, blank ones and the header included.
func (r *Reader) Lines() int { return r.lines.number }

// Next is the next refresh of the file with the malformed lines met on the way; a long run of malformed lines comes in
// batches without a refresh. No refresh of a file is Complete: nobody knows what its writer left out. After the last batch the error is io.EOF. Any other error is the stream's and final: the
// refresh that was being read is left out then, since a part of a refresh looks like a source that lost its quotes.
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

// pages is the next line that is not blank: an observation or a problem.
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

// locate says in which file and line the problem is.
func (r *Reader) locate(problem *LineError) *LineError {
	problem.File, problem.Line = r.name, r.lines.number
	return problem
}

// lineProblem is what is wrong with a line before anybody looks at its values, or nil.
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

// finishSlot hands over what is left at the end of the file, or only the malformed lines when the stream broke.
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
