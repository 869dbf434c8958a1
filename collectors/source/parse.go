package source

import (
	"regexp"
	"slices"
	"time"

	"github.com/tasard/tasard/engine"
)

// Parse reads one page of the source. It is pure. The error is a *Failure; the result then has no observations, but
// notes that may explain it.
func (d *Definition) Parse(page int, doc *Document) (Result, error) {
	if page < 0 || page >= len(d.Pages) {
		return Result{}, Failf(Internal, "the source %s has %d pages, and none with the number %d", d.ID, len(d.Pages), page)
	}
	r := &parser{source: d, page: &d.Pages[page], digest: doc.Digest(), patterns: map[string]*regexp.Regexp{}}
	failure := catchFailure(func() { r.run(doc) })
	if failure == nil {
		return Result{Observations: r.newest, History: r.history, Notes: r.notes.list()}, nil
	}
	if wall := blockedFailure(doc, failure); wall != nil {
		failure = wall
	}
	failure.Page = r.page.Name
	return Result{Notes: r.notes.list()}, failure
}

// failf ends parsing with a failure. It panics; catchFailure recovers.
func failf(kind FailureKind, format string, args ...any) { panic(Failf(kind, format, args...)) }

// catchFailure runs a part of parsing and returns the failure that ended it, or nil.
func catchFailure(part func()) (failure *Failure) {
	defer func() {
		if panicked := recover(); panicked != nil {
			known, ok := panicked.(*Failure)
			if !ok {
				panic(panicked)
			}
			failure = known
		}
	}()
	part()
	return nil
}

// parser parses one document.
type parser struct {
	source   *Definition
	page     *Page
	digest   string
	patterns map[string]*regexp.Regexp
	date     engine.Date // of the whole document
	instant  time.Time
	quotes   []*quote // of the current day
	counts   [valueStatusCount]int
	// firstUnreadable is the first side that could not be read.
	firstUnreadable string
	notes           notes
	searched        int // bytes searched by patterns
	newest          []engine.Observation
	history         []HistoryDay
}

func (r *parser) run(doc *Document) {
	text := checkedText(doc, r.page)
	switch r.page.Extract.Method {
	case XLSXRows:
		r.readSheet(sheetRows(doc.Body, r.page.Extract.Sheet.Name))
		return
	case JSONFields, JSONRows:
		r.extractJSON(text)
	case TextRegex:
		r.extractText(text)
	case HTMLFields, HTMLRows:
		r.extractHTML(text)
	}
	r.requirePrice()
	r.newest = r.takeObservations()
}

// pattern compiles a pattern of the page. Definition files are checked; a Definition made by a program may have an
// invalid one.
func (r *parser) pattern(text string) *regexp.Regexp {
	if known := r.patterns[text]; known != nil {
		return known
	}
	pattern, err := regexp.Compile(text)
	if err != nil {
		failf(Internal, "the pattern %q of %s can't be compiled: %v", text, r.source.ID, err)
	}
	r.patterns[text] = pattern
	return pattern
}

// scope is where locators are resolved: a document, a row of it, or a row of a sheet.
type scope interface {
	// texts returns the texts at a locator, several if a selector matches several elements, without applying the
	// pattern.
	texts(locator *Locator) []foundText
}

// foundText is one text at a locator.
type foundText struct {
	text string
	kind textKind
}

// textKind is how far a text can be trusted to be a number.
type textKind int

const (
	displayText textKind = iota // for people: with currencies, thousands separators and other text
	numberText                  // a JSON number: the point is certain
	cellText                    // a cell of a workbook: a number that may have binary rounding noise
)

// Limits of pattern searches, whose time grows with the text.
const (
	patternBytesMax = 1 << 20 // of one text
	searchBytesMax  = 8 << 20 // of all searched texts of a document
)

// textsAt returns the texts at a locator after applying its pattern: every match, so that a second one can contradict
// the first.
func (r *parser) textsAt(s scope, locator *Locator) []foundText {
	texts := s.texts(locator)
	if locator.Pattern == "" {
		return texts
	}
	var cut []foundText
	for _, one := range texts {
		if len(one.text) > patternBytesMax {
			failf(WrongContent, "%s is a text of %d bytes; at most %d are searched", locator.describe(), len(one.text), patternBytesMax)
		}
		if r.searched += len(one.text); r.searched > searchBytesMax {
			failf(WrongContent, "%s: patterns would search more than %d bytes", locator.describe(), searchBytesMax)
		}
		for _, match := range r.pattern(locator.Pattern).FindAllStringSubmatch(normaliseSpaces(one.text), matchesMax) {
			cut = append(cut, foundText{text: match[min(1, len(match)-1)], kind: one.kind})
		}
	}
	return cut
}

// readDate reads the date of the whole document. A declared date that is missing or unreadable is a failure, since
// the page may have been frozen for years.
func (r *parser) readDate(s scope) {
	if want := r.page.Extract.Date; want != nil {
		r.date, r.instant = r.dateAt(s, want)
	}
}

// dateAt returns the date at a locator. All readable ones must be equal.
func (r *parser) dateAt(s scope, want *Date) (date engine.Date, moment time.Time) {
	var bad error
	for _, one := range r.textsAt(s, &want.Locator) {
		day, instant, err := parseDate(one.text, want.Form)
		switch {
		case err != nil:
			bad = err
		case date.IsZero():
			date, moment = day, instant
		case day != date || !instant.Equal(moment):
			failf(Layout, "the date %s is %s and %s", want.describe(), dateText(date, moment), dateText(day, instant))
		}
	}
	switch {
	case date.IsZero() && bad != nil:
		failf(Layout, "the date %s: %v", want.describe(), bad)
	case date.IsZero():
		failf(Layout, "there is no date %s", want.describe())
	}
	return date, moment
}

func dateText(date engine.Date, moment time.Time) string {
	if moment.IsZero() {
		return date.String()
	}
	return moment.Format(time.RFC3339)
}

// describe returns the locator for a message.
func (p *Locator) describe() string {
	text := "in the row itself"
	if p.At != "" {
		text = "at " + quoted(p.At)
	}
	if p.Column != "" {
		text = "in the column " + quoted(p.Column)
	}
	if p.Attribute != "" {
		text += ", attribute " + quoted(p.Attribute)
	}
	if p.Pattern != "" {
		text += ", with the pattern " + quoted(p.Pattern)
	}
	return text
}

// takeObservations returns the quotes of one day as observations, with the defaults of page and source.
func (r *parser) takeObservations() []engine.Observation {
	var observations []engine.Observation
	for _, q := range r.quotes {
		observations = append(observations, engine.Observation{
			InstitutionID: q.institution, Currency: q.currency, Channel: q.channel, Kind: r.source.Kind,
			Buy: q.buy.text, Sell: q.sell.text, EffectiveDate: q.date, PublishedAt: q.instant, Document: r.digest,
		})
	}
	r.quotes = nil
	return slices.Clip(observations)
}
