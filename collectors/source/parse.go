package source

import (
	"cmp"
	"fmt"
	"regexp"
	"time"

	"github.com/tasard/tasard/collectors/values"
	"github.com/tasard/tasard/engine"
)

// Parse reads the quotes of a document of d.Pages[page]. If the document does not have the layout of this page, Parse
// tries the definitions of its substitutes (Page.InsteadOf). The error is a *Failure. After an error the result
// contains only notes, which name the skipped parts of the document.
func (d *Definition) Parse(page int, doc *Document) (Result, error) {
	result, failure := d.parseOnly(page, doc)
	if failure == nil {
		return result, nil
	}
	for _, other := range d.Alternatives(page) {
		if failure.Kind != Layout {
			break
		}
		if read, otherFailure := d.parseOnly(other, doc); otherFailure == nil {
			read.Notes = append(read.Notes, fmt.Sprintf("read as the page %s instead: %v", d.Pages[other].Name, failure))
			return read, nil
		}
	}
	return result, failure
}

// Alternatives returns the indexes of the substitutes of a page: pages that are read only if the page can't be read.
func (d *Definition) Alternatives(page int) []int {
	var others []int
	for i := range d.Pages {
		if d.Pages[i].InsteadOf != "" && d.Pages[i].InsteadOf == d.Pages[page].Name {
			others = append(others, i)
		}
	}
	return others
}

func (d *Definition) parseOnly(page int, doc *Document) (Result, *Failure) {
	r := &parser{source: d, page: &d.Pages[page], digest: doc.Digest(), patterns: map[string]*regexp.Regexp{}}
	r.run(doc)
	if r.failure == nil {
		return Result{Observations: r.newest, History: r.history, Notes: r.notes.list()}, nil
	}
	if wall := blockedFailure(doc, r.failure); wall != nil {
		r.failure = wall
	}
	r.failure.Page = r.page.Name
	return Result{Notes: r.notes.list()}, r.failure
}

// parser parses one document.
type parser struct {
	source   *Definition
	page     *Page
	digest   string
	patterns map[string]*regexp.Regexp
	date     engine.Date           // date of the rates in the whole document; in a workbook, in the current row
	instant  time.Time             // time of publication; zero = unknown
	quotes   []*quote              // quotes of the document; in a workbook, of the current row
	counts   [valueStatusCount]int // number of texts read in the places of prices, by status
	// firstUnreadable is the first text that is not a price (statusUnreadable), for the error.
	firstUnreadable string
	notes           notes
	searched        int                  // number of bytes searched with patterns so far
	failure         *Failure             // the first failure
	newest          []engine.Observation // becomes Result.Observations
	history         []HistoryDay         // becomes Result.History
}

// failf sets the failure of the parser, unless there is one already.
func (r *parser) failf(kind FailureKind, format string, args ...any) {
	r.fail(Failf(kind, format, args...))
}

// fail is like failf, for an existing failure or nil. It reports whether failure is not nil.
func (r *parser) fail(failure *Failure) bool {
	r.failure = cmp.Or(r.failure, failure)
	return failure != nil
}

func (r *parser) run(doc *Document) {
	text, failure := checkedText(doc, r.page)
	if r.fail(failure) {
		return
	}
	switch r.page.Extract.Method {
	case XLSXRows:
		rows, failure := sheetRows(doc.Body, r.page.Extract.Sheet.Name)
		if !r.fail(failure) {
			r.readSheet(rows)
		}
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

// pattern compiles a regular expression of the definition. The check of the definition has compiled it before.
func (r *parser) pattern(text string) *regexp.Regexp {
	if r.patterns[text] == nil {
		r.patterns[text] = regexp.MustCompile(text)
	}
	return r.patterns[text]
}

// scope is the part of a document in which a locator searches: the whole document, one of its rows, or a row of a
// sheet.
type scope interface {
	// texts returns the text of each element that a locator matches. It ignores locator.Pattern.
	texts(locator *Locator) ([]sourceText, *Failure)
}

// sourceText is one text of a document.
type sourceText struct {
	text string
	kind textKind
}

// textKind says how numbers are written in a text.
type textKind int

const (
	displayText textKind = iota // for people, with currencies and thousands separators
	numberText                  // JSON number or cell of a workbook: a point is the decimal mark
)

// Limits of searches with regular expressions. The time of a search grows with the size of the text.
const (
	patternBytesMax = 1 << 20 // size of one text
	searchBytesMax  = 8 << 20 // total size of all searched texts of a document
)

// textsAt returns the texts that a locator finds. If the locator has a pattern (a regular expression), textsAt returns
// every match of the pattern, so that the caller can compare them.
func (r *parser) textsAt(s scope, locator *Locator) []sourceText {
	texts, failure := s.texts(locator)
	if r.fail(failure) || locator.Pattern == "" {
		return texts
	}
	var matched []sourceText
	for _, t := range texts {
		if len(t.text) > patternBytesMax {
			r.failf(WrongContent, "%s is a text of %d bytes; at most %d are searched", locator.describe(), len(t.text), patternBytesMax)
			return nil
		}
		if r.searched += len(t.text); r.searched > searchBytesMax {
			r.failf(WrongContent, "%s: patterns would search more than %d bytes", locator.describe(), searchBytesMax)
			return nil
		}
		for _, match := range r.pattern(locator.Pattern).FindAllStringSubmatch(values.NormaliseSpaces(t.text), matchesMax) {
			matched = append(matched, sourceText{text: match[min(1, len(match)-1)], kind: t.kind})
		}
	}
	return matched
}

// readDate reads the date of the whole document. It fails if the definition requires a date and the document does not
// contain it: such a page may be years old.
func (r *parser) readDate(s scope) {
	if spec := r.page.Extract.Date; spec != nil {
		var failure *Failure
		r.date, r.instant, failure = r.dateAt(s, spec)
		r.fail(failure)
	}
}

// dateAt returns the date at spec.Locator, and the instant if the form of the date includes a time. It fails if there
// are two different dates, or if there is none and spec does not say Optional.
func (r *parser) dateAt(s scope, spec *Date) (date engine.Date, instant time.Time, failure *Failure) {
	var lastErr error
	texts := r.textsAt(s, &spec.Locator)
	if len(texts) == 0 && spec.Or != "" {
		texts = r.textsAt(s, &Locator{At: spec.Or, Pattern: spec.Pattern})
	}
	for _, t := range texts {
		otherDate, otherInstant, err := values.ParseDate(t.text, spec.Form)
		switch {
		case err != nil:
			lastErr = err
		case date.IsZero():
			date, instant = otherDate, otherInstant
		case otherDate != date || !otherInstant.Equal(instant):
			return 0, time.Time{}, Failf(Layout, "the date %s is %s and %s", spec.describe(), dateText(date, instant), dateText(otherDate, otherInstant))
		}
	}
	switch {
	case date.IsZero() && lastErr != nil:
		failure = Failf(Layout, "the date %s: %v", spec.describe(), lastErr)
	case date.IsZero() && !spec.Optional:
		failure = Failf(Layout, "there is no date %s", spec.describe())
	}
	return date, instant, failure
}

func dateText(date engine.Date, instant time.Time) string {
	if instant.IsZero() {
		return date.String()
	}
	return instant.Format(time.RFC3339)
}

// describe returns the place that the locator describes, in words for a message.
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

// takeObservations returns r.quotes as observations, and clears r.quotes. It joins the sides of a quote that two rows
// have.
func (r *parser) takeObservations() []engine.Observation {
	var observations []engine.Observation
	for _, q := range r.quotes {
		observations = append(observations, engine.Observation{
			InstitutionID: q.institution, Currency: q.currency, Channel: q.channel, Kind: r.source.Kind,
			Buy: q.buy.text, Sell: q.sell.text, EffectiveDate: q.date, PublishedAt: q.instant, Document: r.digest,
		})
	}
	r.quotes = nil
	return JoinSides(observations)
}
