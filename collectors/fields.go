package collectors

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
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
