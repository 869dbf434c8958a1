package source

import (
	"cmp"
	"slices"

	"github.com/tasard/tasard/engine"
)

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
