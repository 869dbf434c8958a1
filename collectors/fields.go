package collectors

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
	"unique"

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
