package source

import (
	"cmp"
	"fmt"
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
