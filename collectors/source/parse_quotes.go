package source

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tasard/tasard/collectors/values"
	"github.com/tasard/tasard/engine"
)

// Limits of quotes and notes.
const (
	notesMax           = 50  // number of notes about skipped parts; further notes are only counted
	quotedMax          = 60  // characters of a text that a note or a failure quotes
	unreadableBytesMax = 64  // bytes of a text that is not a price; more bytes are cut off
	quotesMax          = 500 // number of quotes of one document; real lists have fewer
)

// unreadablePrefix is put before a text that is not accepted as a price, if the text is empty or a valid decimal.
const unreadablePrefix = "unreadable: "

// valueStatus classifies the text in the place of a price. Of several texts, the one with the highest status counts.
type valueStatus int

const (
	statusMissing    valueStatus = iota // no text
	statusNoValue                       // a text that means that there is no price, such as N/A
	statusUnreadable                    // a text that is not a price
	statusZero                          // 0, which the engine does not publish
	statusPrice
	valueStatusCount int = iota
)

// side is the buy price or the sell price of a quote, or the text that is in its place.
type side struct {
	status   valueStatus
	text     string // a decimal or, with statusUnreadable, the text of the page; "" = no price
	conflict bool   // two different prices were found in one place; text contains both
}

type quote struct {
	quoteKey
	buy, sell side
}

// String names the quote in a message.
func (q *quote) String() string {
	return fmt.Sprintf("%s %s buy %q sell %q", q.institution, q.currency, q.buy.text, q.sell.text)
}

type quoteKey struct {
	institution, currency string
	channel               engine.Channel
	date                  engine.Date
	instant               time.Time
}

// keyOf returns the key of the quote that t describes. Empty members of t are taken from the page or the source.
func (r *parser) keyOf(t Target) quoteKey {
	return quoteKey{
		institution: cmp.Or(t.Institution, r.page.Institution, r.source.Institution), currency: cmp.Or(t.Currency, r.page.Currency),
		channel: cmp.Or(t.Channel, r.source.Channel), date: r.date, instant: r.instant,
	}
}

// addQuote adds a quote to r.quotes, unless both sides are empty or an equal quote exists. If two different quotes have
// the same key, it adds both; the engine then publishes neither.
func (r *parser) addQuote(key quoteKey, buy, sell side) {
	r.count(buy)
	r.count(sell)
	if sides := []*side{&buy, &sell}; (buy.status == statusZero) != (sell.status == statusZero) { // drop only the zero side
		for i, zero := range sides {
			if zero.status == statusZero && sides[1-i].status == statusPrice {
				*zero = side{}
				r.notes.add("%s %s: one side is zero", key.institution, key.currency)
			}
		}
	}
	if buy.text == "" && sell.text == "" {
		if buy.status == statusNoValue || sell.status == statusNoValue {
			r.notes.add("%s %s: no value", key.institution, key.currency)
		}
		return
	}
	for _, q := range r.quotes {
		if q.quoteKey == key && q.buy.text == buy.text && q.sell.text == sell.text {
			return
		}
	}
	if len(r.quotes) >= quotesMax {
		r.failf(WrongContent, "more than %d quotes in one document", quotesMax)
		return
	}
	r.quotes = append(r.quotes, &quote{quoteKey: key, buy: buy, sell: sell})
}

func (r *parser) count(value side) {
	r.counts[value.status]++
	if value.status == statusUnreadable && r.firstUnreadable == "" {
		r.firstUnreadable = value.text
	}
}

// requirePrice fails if the document contains no price.
func (r *parser) requirePrice() {
	switch {
	case r.counts[statusPrice] > 0:
	case r.counts[statusUnreadable] > 0:
		r.failf(Value, "none of %d values is a rate, such as %s", r.counts[statusUnreadable], quoted(r.firstUnreadable))
	case r.counts[statusZero]+r.counts[statusNoValue] > 0:
		r.failf(Empty, "all %d values are zero or not available", r.counts[statusZero]+r.counts[statusNoValue])
	default:
		r.failf(Layout, "there is no value where the definition expects one%s", r.notes.summary())
	}
}

// valueAt returns the price, or another text, at the place that a locator describes. If it finds two different prices
// there, the result is a conflict.
func (r *parser) valueAt(s scope, locator *Locator, currency string) side {
	if locator == nil {
		return side{}
	}
	var best side
	for _, t := range r.textsAt(s, locator) {
		value := r.priceOf(t, currency)
		if best.status == statusPrice && value.status == statusPrice && !sameValue(best.text, value.text) {
			return side{status: statusUnreadable, text: best.text + " and " + value.text, conflict: true}
		}
		if value.status > best.status {
			best = value
		}
	}
	if locator.Column == "" || locator.Attribute == "" {
		return best
	}
	return r.checkVisible(s, locator, currency, best)
}

// checkVisible compares value, from an attribute of a cell, with the visible price of the cell. The result is a
// conflict if they differ: some pages sort tables by such attributes, but do not update them. If a cell lacks the
// attribute, the result is the visible price.
func (r *parser) checkVisible(s scope, locator *Locator, currency string, value side) side {
	visible := *locator
	visible.Attribute = ""
	visibleValue := r.valueAt(s, &visible, currency)
	if value.status == statusMissing {
		return visibleValue
	}
	if visibleValue.status != statusPrice || value.status != statusPrice || sameValue(visibleValue.text, value.text) {
		return value
	}
	return side{status: statusUnreadable, text: value.text + " and " + visibleValue.text, conflict: true}
}

func sameValue(a, b string) bool {
	decimalA, errA := engine.ReadDecimal(a)
	decimalB, errB := engine.ReadDecimal(b)
	return errA == nil && errB == nil && decimalA.Equal(decimalB)
}

// priceOf parses a text as a price. If that is not possible, the result contains the text itself, which the engine then
// rejects.
func (r *parser) priceOf(t sourceText, currency string) side {
	text := t.text
	var err error
	switch t.kind {
	case numberText:
		text, err = values.ParseNumber(text, r.source.Decimal, r.source.DecimalsMax)
	case displayText:
		text, err = values.ParsePrice(text, r.source.Decimal, r.source.DecimalsMax)
	}
	decimal, _ := engine.ReadDecimal(text)
	switch {
	case err != nil || values.ForeignCurrency(t.text, currency) != "":
		return side{status: statusUnreadable, text: unreadableText(t.text)}
	case text == "":
		return side{status: statusNoValue}
	case decimal.IsZero():
		return side{status: statusZero, text: text}
	}
	return side{status: statusPrice, text: text}
}

// unreadableText returns the text of a side with statusUnreadable. It is never a valid decimal, because the engine
// would accept a decimal as a price.
func unreadableText(text string) string {
	text = values.CollapseSpaces(strings.ToValidUTF8(text, string(utf8.RuneError)))
	if _, err := engine.ReadDecimal(text); err == nil || text == "" {
		text = unreadablePrefix + text
	}
	for len(text) > unreadableBytesMax {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return text
}

// notes collects texts about the skipped parts of a document.
type notes struct {
	texts []string
	more  int // number of notes after notesMax, which are dropped
}

func (n *notes) add(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if slices.Contains(n.texts, text) {
		return
	}
	if len(n.texts) >= notesMax {
		n.more++
		return
	}
	n.texts = append(n.texts, text)
}

func (n *notes) list() []string {
	if n.more == 0 {
		return n.texts
	}
	return append(n.texts[:len(n.texts):len(n.texts)], fmt.Sprintf("and %d more", n.more))
}

// summary returns the first three notes, for the end of a failure message.
func (n *notes) summary() string {
	if len(n.texts) == 0 {
		return ""
	}
	return ": " + strings.Join(n.texts[:min(3, len(n.texts))], "; ")
}

// quoted returns a text of a document or definition for a message: in quotes, on one line, shortened to quotedMax.
func quoted(text string) string {
	runes := []rune(values.CollapseSpaces(text[:min(len(text), 4*quotedMax)]))
	if len(runes) > quotedMax {
		runes = append(runes[:quotedMax], '…')
	}
	return fmt.Sprintf("%q", string(runes))
}

// fieldQuote groups the fields of a definition that together describe one quote. A Field describes one price.
type fieldQuote struct {
	target   Target              // currency and channel of the quote; "" = those of the page or the source
	from     engine.Date         // workbook: the quote begins with the row of this day; zero = with the first row
	locators map[Side][]*Locator // where the price of each side is; tried in order
}

// fieldQuotes groups fields by currency and channel, in the order of the first field of each group.
func fieldQuotes(fields []Field) []*fieldQuote {
	var quotes []*fieldQuote
	byTarget := map[Target]*fieldQuote{}
	for i := range fields {
		field := &fields[i]
		target := Target{Currency: field.Currency, Channel: field.Channel}
		quote := byTarget[target]
		if quote == nil {
			quote = &fieldQuote{target: target, from: engine.Date(field.From), locators: map[Side][]*Locator{}}
			byTarget[target] = quote
			quotes = append(quotes, quote)
		}
		quote.locators[field.Side] = append(quote.locators[field.Side], &field.Locator)
	}
	return quotes
}

// readFields reads the quotes of Extract.Fields from the document s. It adds a note for each missing price.
func (r *parser) readFields(s scope) {
	for _, fields := range fieldQuotes(r.page.Extract.Fields) {
		buy, sell := r.fieldSides(s, fields)
		key, both := r.keyOf(fields.target), fields.locators[BothSides]
		r.noteMissing(key, buy, slices.Concat(fields.locators[BuySide], both), "buy")
		r.noteMissing(key, sell, slices.Concat(fields.locators[SellSide], both), "sell")
		r.addQuote(key, buy, sell)
	}
}

func (r *parser) noteMissing(key quoteKey, value side, locators []*Locator, name string) {
	if value.status == statusMissing && len(locators) > 0 && locators[0] != nil {
		r.notes.add("%s %s: there is no %s %s", key.institution, key.currency, name, locators[0].describe())
	}
}

func (r *parser) fieldSides(s scope, fields *fieldQuote) (buy, sell side) {
	currency := cmp.Or(fields.target.Currency, r.page.Currency)
	if locators := fields.locators[BothSides]; len(locators) > 0 {
		both := r.firstPrice(s, locators, currency, "value")
		return both, both
	}
	return r.firstPrice(s, fields.locators[BuySide], currency, "buy"), r.firstPrice(s, fields.locators[SellSide], currency, "sell")
}

// firstPrice tries the locators in order and returns the first price. If there is none, it returns the found text with
// the highest valueStatus. It fails if one locator finds two different prices.
func (r *parser) firstPrice(s scope, locators []*Locator, currency, name string) side {
	var best side
	for _, locator := range locators {
		value := r.valueAt(s, locator, currency)
		switch {
		case value.conflict:
			r.failf(Value, "%s of %s %s is %s", name, currency, locator.describe(), value.text)
		case value.status == statusPrice:
			if best.status == statusUnreadable {
				r.notes.add("%s: %s is not a %s; taken from the next field, %s", currency, quoted(best.text), name, locator.describe())
			}
			return value
		case value.status > best.status:
			best = value
		}
	}
	return best
}

// JoinSides joins observations with one side (buy or sell) each of the same quote, for example from two pages. If a
// side occurs twice, two observations of the quote remain, and the engine rejects both. The argument is not changed.
func JoinSides(observations []engine.Observation) []engine.Observation {
	joined := make([]engine.Observation, 0, len(observations))
	for _, o := range observations {
		if partner := otherSide(joined, &o); partner != nil {
			partner.Buy, partner.Sell = partner.Buy+o.Buy, partner.Sell+o.Sell
			continue
		}
		joined = append(joined, o)
	}
	return joined
}

// otherSide returns an observation of o's quote that has only the other side, or nil.
func otherSide(observations []engine.Observation, o *engine.Observation) *engine.Observation {
	if (o.Buy == "") == (o.Sell == "") {
		return nil
	}
	for i := range observations {
		other := &observations[i]
		if (other.Buy == "") != (o.Buy == "") && (other.Sell == "") != (o.Sell == "") && other.Currency == o.Currency &&
			other.Key() == o.Key() && other.EffectiveDate == o.EffectiveDate && other.PublishedAt.Equal(o.PublishedAt) {
			return other
		}
	}
	return nil
}

// labelBytesMax bounds a label; the rest of a longer text is ignored.
const labelBytesMax = 500

// readGroups reads the rows of a document and adds their quotes to r.quotes. A row is identified by its label, such as
// the name of a bank. readGroups skips a row with an unknown label and adds a note. It fails if it reads fewer than
// Rows.Min rows, because then the page has changed.
//
// A group consists of the rows below one row of headings. Later groups may repeat the quotes of the first group, for
// example for narrow screens. A later group with other quotes is a failure: they may be old rates, or rates of cards or
// of the central bank.
func (r *parser) readGroups(groups [][]scope) {
	read, total := 0, 0
	for _, rows := range groups {
		quotesBefore := len(r.quotes)
		for _, row := range rows {
			if target, ok := r.rowTarget(row); ok && !r.excluded(row, target) && r.readRow(row, target) {
				read++
			}
		}
		if quotesBefore > 0 && len(r.quotes) > quotesBefore {
			r.failf(Layout, "the rows below another row of headings differ, such as %s; select one table in at", r.quotes[quotesBefore])
		}
		total += len(rows)
	}
	r.requireMin(read, total, r.page.Extract.Rows.Min, "rows with a known label and a value")
}

func (r *parser) requireMin(count, total, minimum int, noun string) {
	if count < max(minimum, 1) {
		r.failf(Layout, "%d %s of %d in all, want at least %d%s", count, noun, total, max(minimum, 1), r.notes.summary())
	}
}

// rowTarget looks up the label of a row in Rows.Labels. It returns false for a row that must be skipped.
func (r *parser) rowTarget(row scope) (Target, bool) {
	rows := r.page.Extract.Rows
	label := ""
	for _, t := range r.textsAt(row, &rows.Label) {
		text := t.text[:min(len(t.text), labelBytesMax)]
		switch normalised := values.NormaliseLabel(text); {
		case normalised == "" || normalised == label:
		case label == "":
			label = normalised
		default:
			r.notes.add("a row has two labels, %s and %s", quoted(label), quoted(normalised))
			return Target{}, false
		}
	}
	target, known := rows.Labels.find(label, rows.Value != nil)
	if !known && label != "" && !slices.Contains(rows.Ignore, label) {
		r.notes.add("unknown label %s", quoted(label))
	}
	return target, known
}

// excluded reports whether a row is skipped because of Rows.Unless. If so, it adds a note.
func (r *parser) excluded(row scope, target Target) bool {
	rows := r.page.Extract.Rows
	if rows.Unless == "" {
		return false
	}
	unread := Side("")
	if rows.Value == nil && rows.Sell == nil {
		unread = SellSide
	}
	for _, t := range r.textsAt(row, &Locator{Pattern: `(?s).+`}) {
		if reason := values.OtherRate(t.text, r.keyOf(target).currency, string(unread)); reason != "" {
			r.notes.add("a row is skipped because it has %s", quoted(reason))
			return true
		}
	}
	return false
}

// readRow adds the quote of a row to r.quotes. It returns false if the row has no text where prices should be.
func (r *parser) readRow(row scope, target Target) bool {
	rows := r.page.Extract.Rows
	key := r.keyOf(target)
	if rows.Date != nil {
		var failure *Failure
		if key.date, key.instant, failure = r.dateAt(row, rows.Date); failure != nil {
			r.notes.add("%s %s is skipped: %s", key.institution, key.currency, failure.Detail)
			return false
		}
	}
	if rows.Value != nil {
		value := r.valueAt(row, rows.Value, key.currency)
		if value.status != statusMissing {
			switch target.Side {
			case BuySide:
				r.addQuote(key, value, side{})
			case SellSide:
				r.addQuote(key, side{}, value)
			case BothSides:
				r.addQuote(key, value, value)
			}
		}
		return value.status != statusMissing
	}
	buy, sell := r.valueAt(row, rows.Buy, key.currency), r.valueAt(row, rows.Sell, key.currency)
	r.noteMissing(key, buy, []*Locator{rows.Buy}, "buy")
	r.noteMissing(key, sell, []*Locator{rows.Sell}, "sell")
	r.addQuote(key, buy, sell)
	return buy.status != statusMissing || sell.status != statusMissing
}

// matchesMax is the maximum number of matches of a pattern; further matches are ignored. No known page has as many.
const matchesMax = 1000

// extractText reads the quotes of a text with a regular expression (Text.Pattern).
func (r *parser) extractText(text string) {
	if at := r.page.Extract.Text.At; at != "" {
		document, failure := parseHTML(text)
		if r.fail(failure) {
			return
		}
		lines := (&Locator{At: at}).Texts(document)
		if len(lines) == 0 {
			r.failf(Layout, "there is no text at %s", quoted(at))
			return
		}
		text = strings.Join(lines, "\n")
	}
	r.readMatches(values.NormaliseSpaces(text))
}

// readMatches adds a quote to r.quotes for every match of the pattern. The label is the text of the group named
// "label", such as the name of a bank. Matches with an unknown label are skipped.
func (r *parser) readMatches(text string) {
	if len(text) > patternBytesMax {
		r.failf(WrongContent, "a text of %d bytes; at most %d are searched", len(text), patternBytesMax)
		return
	}
	spec := r.page.Extract.Text
	pattern := r.pattern(spec.Pattern)
	matches := findMatches(pattern, text)
	count := 0
	for _, match := range matches {
		target, ok := r.matchTarget(pattern, match)
		if !ok {
			continue
		}
		key := r.keyOf(target)
		if spec.Unless != "" {
			if reason := values.OtherRate(match[0], key.currency, ""); reason != "" {
				r.notes.add("%s is skipped because it has %s", quoted(match[0]), quoted(reason))
				continue
			}
		}
		count++
		r.addQuote(key, r.groupPrice(pattern, match, "buy", key.currency), r.groupPrice(pattern, match, "sell", key.currency))
	}
	r.requireMin(count, len(matches), 1, "matches of the pattern with a known label")
}

// findMatches returns the matches of a pattern. A match may include text after its last group, and another match may
// begin in this text. So findMatches searches the text again, without the groups of the first matches. Otherwise it
// could find only the first half of "Vendemos 60.10 Compramos 58.10 Vendemos 70.10 ...".
func findMatches(pattern *regexp.Regexp, text string) [][]string {
	positions := pattern.FindAllStringSubmatchIndex(text, matchesMax)
	remaining := []byte(text)
	var matches [][]string
	for _, position := range positions {
		match := make([]string, 0, len(position)/2)
		lastGroup := position[0]
		for i := 0; i < len(position); i += 2 {
			match = append(match, text[max(position[i], 0):max(position[i+1], 0)])
			if i > 0 {
				lastGroup = max(lastGroup, position[i+1])
			}
		}
		matches = append(matches, match)
		clear(remaining[position[0]:lastGroup])
	}
	if len(matches) == 0 {
		return nil
	}
	return append(matches, pattern.FindAllStringSubmatch(string(remaining), matchesMax)...)
}

// matchTarget returns the quote that the label of a match stands for, or false if the label is unknown. If the pattern
// has no group "label", it returns the zero Target, which stands for the quote of the page.
func (r *parser) matchTarget(pattern *regexp.Regexp, match []string) (Target, bool) {
	if pattern.SubexpIndex("label") < 0 {
		return Target{}, true
	}
	label := ""
	for i, name := range pattern.SubexpNames() {
		if name == "label" && match[i] != "" {
			label = values.NormaliseLabel(match[i][:min(len(match[i]), labelBytesMax)])
		}
	}
	target, known := r.page.Extract.Text.Labels.find(label, false)
	if !known && label != "" {
		r.notes.add("unknown label %s", quoted(label))
	}
	return target, known
}

// groupPrice parses the price in the first non-empty group that has the given name.
func (r *parser) groupPrice(pattern *regexp.Regexp, match []string, group, currency string) side {
	for i, name := range pattern.SubexpNames() {
		if name == group && match[i] != "" {
			return r.priceOf(sourceText{text: match[i]}, currency)
		}
	}
	return side{}
}
