package source

import (
	"regexp"
	"slices"
	"time"

	"github.com/tasard/tasard/engine"
)

// Parse reads one page of the source. It is pure: the same bytes give the same answer. The error is a *Failure. With a failure
// the answer has no observations, but its notes may tell why.
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

// failf ends the reading of a document from wherever its failure is found.
func failf(kind FailureKind, format string, args ...any) { panic(Failf(kind, format, args...)) }

// catchFailure does a part of the reading, and gives the failure that ended it, nil when it came to its end.
func catchFailure(part func()) (failure *Failure) {
	defer func() {
		if thrown := recover(); thrown != nil {
			known, ok := thrown.(*Failure)
			if !ok {
				panic(thrown)
			}
			failure = known
		}
	}()
	part()
	return nil
}

// parser is one document while it is read.
type parser struct {
	source   *Definition
	page     *Page
	digest   string
	patterns map[string]*regexp.Regexp
	date     engine.Date // of the whole document
	instant  time.Time
	quotes   []*quote // of the day that is read
	counts   [valueStatusCount]int
	// firstUnreadable is the first side that could not be read.
	firstUnreadable string
	notes           notes
	searched        int // bytes, by patterns
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

// pattern is a pattern of the page, compiled. The reader of definitions has checked it; a definition that was made in a program
// need not have been.
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

// scope is where places are looked for: a document, one row of it, or one row of a sheet.
type scope interface {
	// texts are what stands at a place, several where a selector finds several elements; the pattern is not applied yet.
	texts(place *Locator) []foundText
}

// foundText is one text at a place.
type foundText struct {
	text string
	kind textKind
}

// textKind is how a text can be trusted to say a number.
type textKind int

const (
	displayText textKind = iota // for people: with currencies, marks of thousands and whatever else
	numberText                  // a number of JSON: the point is certain
	cellText                    // of a workbook: as a number, but may carry the noise of binary fractions
)

// Limits of what patterns search: their time grows with it.
const (
	patternBytesMax = 1 << 20 // of one text
	searchBytesMax  = 8 << 20 // of all texts of a document, each as often as it is searched
)

// textsAt is what stands at a place, cut by its pattern: every match of it, so that a second one can contradict the first. What the
// pattern does not fit is not there.
func (r *parser) textsAt(s scope, place *Locator) []foundText {
	texts := s.texts(place)
	if place.Pattern == "" {
		return texts
	}
	var cut []foundText
	for _, one := range texts {
		if len(one.text) > patternBytesMax {
			failf(WrongContent, "%s stands a text of %d bytes; at most %d are searched", place.describe(), len(one.text), patternBytesMax)
		}
		if r.searched += len(one.text); r.searched > searchBytesMax {
			failf(WrongContent, "%s and before, patterns have more than %d bytes to search", place.describe(), searchBytesMax)
		}
		for _, match := range r.pattern(place.Pattern).FindAllStringSubmatch(normaliseSpaces(one.text), matchesMax) {
			cut = append(cut, foundText{text: match[min(1, len(match)-1)], kind: one.kind})
		}
	}
	return cut
}

// parseDate takes the date of the whole document. A declared date that is not there, or can't be read, fails the page: serving
// its rates without a date could give a page new life that has been frozen for years.
func (r *parser) readDate(s scope) {
	if want := r.page.Extract.Date; want != nil {
		r.date, r.instant = r.dateAt(s, want)
	}
}

// dateAt is the one date at a place. Several readable ones must agree.
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
			failf(Layout, "the date %s says %s and %s", want.describe(), dateText(date, moment), dateText(day, instant))
		}
	}
	switch {
	case date.IsZero() && bad != nil:
		failf(Layout, "the date %s: %v", want.describe(), bad)
	case date.IsZero():
		failf(Layout, "no date stands %s", want.describe())
	}
	return date, moment
}

func dateText(date engine.Date, moment time.Time) string {
	if moment.IsZero() {
		return date.String()
	}
	return moment.Format(time.RFC3339)
}

// locator names the place for people.
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

// takeObservations hands over the quotes of one day, completed by what the page and the source say.
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
