package collectors

import (
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
	for c, text := range f {
		if problem := textProblem(column(c), text); problem != nil {
			return Observation{}, problem
		}
	}
	observed, problem := f.instant(columnObservedAt)
	if problem != nil {
		return Observation{}, problem
	}
	published, problem := f.instant(columnPublishedAt)
	if problem != nil {
		return Observation{}, problem
	}
	effective, problem := f.date(columnEffectiveDate)
	if problem != nil {
		return Observation{}, problem
	}
	channel, kind, problem := f.channelAndKind()
	if problem != nil {
		return Observation{}, problem
	}
	return Observation{
		SourceID: f[columnSourceID], ObservedAt: observed,
		Observation: engine.Observation{
			InstitutionID: f[columnInstitutionID], Currency: f[columnCurrency], Channel: channel, Kind: kind,
			Buy: f[columnBuy], Sell: f[columnSell], EffectiveDate: effective, PublishedAt: published,
		},
	}, nil
}

// textProblem returns an error for a missing or too long text, or one with forbidden characters. text must be valid
// UTF-8.
func textProblem(c column, text string) *LineError {
	limit := lineBytesMax
	switch c {
	case columnObservedAt, columnCurrency:
		if text == "" {
			return &LineError{Column: c.String(), Found: "nothing", Want: "a value"}
		}
	case columnInstitutionID, columnSourceID:
		limit = engine.InstitutionIDMax
		if c == columnSourceID {
			limit = sourceIDMax
		}
		if text == "" {
			return &LineError{Column: c.String(), Found: "nothing", Want: "a value"}
		}
	}
	if len(text) > limit && utf8.RuneCountInString(text) > limit {
		return &LineError{Column: c.String(), Found: quoted(text), Want: fmt.Sprintf("at most %d characters", limit)}
	}
	if strings.ContainsFunc(text, isForbiddenRune) {
		return &LineError{
			Column: c.String(), Found: quoted(text),
			Want: "text without control characters and without U+FFFD, the mark of damaged text",
		}
	}
	return nil
}

func isForbiddenRune(r rune) bool { return r < ' ' || r == 0x7F || r == utf8.RuneError }

// instant parses the RFC 3339 time in a column. The text "" gives the zero time.
func (f *fields) instant(c column) (time.Time, *LineError) {
	if f[c] == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, f[c])
	if t = t.UTC(); err != nil || !strictRFC3339.MatchString(f[c]) || !isPlausibleYear(t) {
		return time.Time{}, &LineError{
			Column: c.String(), Found: quoted(f[c]),
			Want: fmt.Sprintf("an RFC 3339 instant of the years %d to %d, as 2025-05-17T13:29:03Z", yearMin, yearMax),
		}
	}
	return t, nil
}

// strictRFC3339 rejects texts that time.Parse accepts against RFC 3339: an hour of one digit, a comma or more than nine
// digits in the seconds, and offsets of a day or more.
var strictRFC3339 = regexp.MustCompile(`^.{11}\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):\d\d)$`)

// isPlausibleYear rejects typing errors, such as 0205 for 2025.
func isPlausibleYear(t time.Time) bool { return yearMin <= t.Year() && t.Year() <= yearMax }

// date parses the calendar date in a column. The text "" gives the zero date.
func (f *fields) date(c column) (engine.Date, *LineError) {
	if f[c] == "" {
		return 0, nil
	}
	date, err := engine.ParseDate(f[c])
	if err != nil || !isPlausibleYear(date.Start()) {
		return 0, &LineError{
			Column: c.String(), Found: quoted(f[c]),
			Want: fmt.Sprintf("a calendar date of the years %d to %d, as 2025-05-17", yearMin, yearMax),
		}
	}
	return date, nil
}

// channelAndKind parses the channel and the kind of a rate. The text "" gives the default: engine.Unspecified or
// engine.Commercial.
func (f *fields) channelAndKind() (engine.Channel, engine.Kind, *LineError) {
	channel, kind := engine.Unspecified, engine.Commercial
	var known bool
	if f[columnChannel] != "" {
		if channel, known = engine.ParseChannel(f[columnChannel]); !known {
			return "", "", enumProblem(columnChannel, f[columnChannel], engine.Channels())
		}
	}
	if f[columnKind] != "" {
		if kind, known = engine.ParseKind(f[columnKind]); !known {
			return "", "", enumProblem(columnKind, f[columnKind], engine.Kinds())
		}
	}
	return channel, kind, nil
}

func enumProblem[T ~string](c column, found string, known []T) *LineError {
	words := strings.Join(strings.Fields(strings.Trim(fmt.Sprint(known), "[]")), ", ")
	return &LineError{Column: c.String(), Found: quoted(found), Want: "nothing or one of " + words}
}

// quoted returns a text in quotes, escaped and shortened, for an error.
func quoted(text string) string {
	if len(text) <= quotedBytesMax {
		return fmt.Sprintf("%q", text)
	}
	start := strings.ToValidUTF8(text[:quotedBytesMax], "")
	return fmt.Sprintf("%q and %d bytes more", start, len(text)-len(start))
}

// shared returns the same string for equal texts. Files repeat few texts, and a substring would keep its whole line in
// memory.
func shared(text string) string { return unique.Make(text).Value() }
