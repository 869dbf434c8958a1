package collectors

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
	"unique"

	"github.com/tidwall/gjson"

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

// column is a column of a CSV file or a key of an NDJSON file.
type column int

const (
	columnObservedAt column = iota
	columnInstitutionID
	columnCurrency
	columnChannel
	columnKind
	columnBuy
	columnSell
	columnSourceID
	columnEffectiveDate
	columnPublishedAt
	columnCount
)

// columns lists the names of the columns, in the order of the constants above.
const columns = "observedAt,institutionId,currency,channel,kind,buy,sell,sourceId,effectiveDate,publishedAt"

var columnNames = strings.Split(columns, ",")

func (c column) String() string { return columnNames[c] }

func parseColumn(name string) (column, bool) {
	c := slices.Index(columnNames, name)
	return column(c), c >= 0
}

// fields are the texts of one line of an observation file, by column. NDJSON's null is "".
type fields [columnCount]string

// observation converts the texts to an Observation. The LineError describes the first invalid text.
func (f *fields) observation() (Observation, *LineError) {
	p := &fieldParser{fields: f}
	for c := range columnCount {
		p.checkText(c)
	}
	o := Observation{
		SourceID: f[columnSourceID], ObservedAt: p.instant(columnObservedAt),
		Observation: engine.Observation{
			InstitutionID: f[columnInstitutionID], Currency: f[columnCurrency], Channel: p.channel(), Kind: p.kind(),
			Buy: f[columnBuy], Sell: f[columnSell], EffectiveDate: p.date(columnEffectiveDate), PublishedAt: p.instant(columnPublishedAt),
		},
	}
	return o, p.problem
}

// fieldParser parses texts and keeps the first problem.
type fieldParser struct {
	*fields
	problem *LineError
}

func (p *fieldParser) failf(c column, want string, args ...any) {
	p.problem = cmp.Or(p.problem, &LineError{Column: c.String(), Found: quoted(p.fields[c]), Want: fmt.Sprintf(want, args...)})
}

// checkText reports a missing or too long text, or one with forbidden characters. The text must be valid UTF-8.
func (p *fieldParser) checkText(c column) {
	text, isID := p.fields[c], c == columnInstitutionID || c == columnSourceID
	switch {
	case text == "" && (isID || c == columnObservedAt || c == columnCurrency):
		p.problem = cmp.Or(p.problem, &LineError{Column: c.String(), Found: "nothing", Want: "a value"})
	case isID && utf8.RuneCountInString(text) > engine.InstitutionIDMax:
		p.failf(c, "at most %d characters", engine.InstitutionIDMax)
	case strings.ContainsFunc(text, isForbiddenRune):
		p.failf(c, "text without control characters and without U+FFFD, the mark of damaged text")
	}
}

func isForbiddenRune(r rune) bool { return r < ' ' || r == 0x7F || r == utf8.RuneError }

// instant parses the RFC 3339 time in a column. The text "" gives the zero time.
func (p *fieldParser) instant(c column) (t time.Time) {
	text := p.fields[c]
	if text == "" {
		return t
	}
	t, err := time.Parse(time.RFC3339, text)
	if t = t.UTC(); err != nil || !strictRFC3339.MatchString(text) || !isPlausibleYear(t) {
		p.failf(c, "an RFC 3339 instant of the years %d to %d, as 2025-05-17T13:29:03Z", yearMin, yearMax)
	}
	return t
}

// strictRFC3339 rejects texts that time.Parse accepts against RFC 3339: an hour of one digit, a comma or more than nine
// digits in the seconds, and offsets of a day or more.
var strictRFC3339 = regexp.MustCompile(`^.{11}\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):\d\d)$`)

// isPlausibleYear rejects typing errors, such as 0205 for 2025.
func isPlausibleYear(t time.Time) bool { return yearMin <= t.Year() && t.Year() <= yearMax }

// date parses the calendar date in a column. The text "" gives the zero date.
func (p *fieldParser) date(c column) (date engine.Date) {
	if p.fields[c] == "" {
		return 0
	}
	date, err := engine.ParseDate(p.fields[c])
	if err != nil || !isPlausibleYear(date.Start()) {
		p.failf(c, "a calendar date of the years %d to %d, as 2025-05-17", yearMin, yearMax)
	}
	return date
}

func (p *fieldParser) channel() engine.Channel {
	return oneOf(p, columnChannel, engine.Unspecified, engine.Channels())
}

func (p *fieldParser) kind() engine.Kind {
	return oneOf(p, columnKind, engine.Commercial, engine.Kinds())
}

// oneOf parses one of the known words. The text "" gives the default.
func oneOf[T ~string](p *fieldParser, c column, def T, known []T) T {
	value := cmp.Or(T(p.fields[c]), def)
	if !slices.Contains(known, value) {
		p.failf(c, "nothing or one of %s", strings.Join(strings.Fields(strings.Trim(fmt.Sprint(known), "[]")), ", "))
	}
	return value
}

// quoted returns a text in quotes, escaped and shortened, for an error.
func quoted(text string) string {
	if len(text) <= quotedBytesMax {
		return fmt.Sprintf("%q", text)
	}
	start := strings.ToValidUTF8(text[:quotedBytesMax], "")
	return fmt.Sprintf("%q and %d bytes more", start, len(text)-len(start))
}

// shared returns the same string for equal texts, to save memory: a file repeats the same few texts. A substring would
// keep its whole line in memory.
func shared(text string) string { return unique.Make(text).Value() }

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

// parseJSON parses one line of NDJSON: an object with strings and nulls. A repeated key is an error, because its value
// would be ambiguous.
func parseJSON(line []byte, values *fields) *LineError {
	var object map[string]json.RawMessage
	err := json.Unmarshal(line, &object)
	if wrongType := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrongType) {
		return &LineError{Found: "one " + wrongType.Value, Want: "a JSON object"}
	}
	if err != nil {
		return &LineError{Found: "no JSON: " + err.Error(), Want: "one JSON object"}
	}
	keys := 0
	gjson.ParseBytes(line).ForEach(func(gjson.Result, gjson.Result) bool { keys++; return true })
	if object != nil && keys != len(object) {
		return &LineError{Found: "a key twice", Want: "each key once"}
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		c, known := parseColumn(name)
		if !known {
			return &LineError{Found: "the unknown key " + quoted(name), Want: "no keys but " + columns}
		}
		var text string // null leaves it empty
		if err := json.Unmarshal(object[name], &text); err != nil {
			return &LineError{Column: name, Found: quoted(string(object[name])), Want: `text in quotes, as "58.95", or null; numbers lose digits on their way`}
		}
		values[c] = shared(text)
	}
	return nil
}

// Writer writes an observation file. It buffers its output: call Flush at the end. It is not safe for concurrent use.
type Writer struct {
	out *bufio.Writer
	csv *csv.Writer // nil = NDJSON
}

// NewWriter returns a Writer of a format.
func NewWriter(w io.Writer, format Format) (*Writer, error) {
	writer := &Writer{out: bufio.NewWriter(w)}
	switch format {
	case CSV:
		writer.csv = csv.NewWriter(writer.out)
		return writer, writer.csv.Write(columnNames)
	case NDJSON:
		return writer, nil
	}
	return nil, fmt.Errorf("begin an observation file: unknown format %q, want %s or %s", format, CSV, NDJSON)
}

// Write writes one observation without Line and ExpiresAt, which have no column. Its texts must be without line ends.
func (w *Writer) Write(o Observation) error {
	return w.writeFields(fieldsOf(&o))
}

func (w *Writer) writeFields(values fields) error {
	if w.csv != nil {
		return w.csv.Write(values[:])
	}
	pairs := make([]string, len(values))
	for c, text := range values {
		value := []byte("null")
		if text != "" {
			var err error
			if value, err = json.Marshal(text); err != nil {
				return fmt.Errorf("encode %s: %w", column(c), err)
			}
		}
		pairs[c] = fmt.Sprintf("%q:%s", column(c), value)
	}
	_, err := w.out.WriteString("{" + strings.Join(pairs, ",") + "}\n")
	return err
}

// Flush writes the buffered output.
func (w *Writer) Flush() error {
	if w.csv != nil {
		w.csv.Flush()
	}
	if err := w.out.Flush(); err != nil {
		return fmt.Errorf("write observations: %w", err)
	}
	return nil
}

func fieldsOf(o *Observation) fields {
	return fields{
		columnObservedAt: instantText(o.ObservedAt), columnPublishedAt: instantText(o.PublishedAt),
		columnInstitutionID: o.InstitutionID, columnCurrency: o.Currency, columnSourceID: o.SourceID,
		columnChannel: string(cmp.Or(o.Channel, engine.Unspecified)), columnKind: string(cmp.Or(o.Kind, engine.Commercial)),
		columnBuy: o.Buy, columnSell: o.Sell, columnEffectiveDate: o.EffectiveDate.String(),
	}
}

func instantText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
