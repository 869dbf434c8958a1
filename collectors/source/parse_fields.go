package source

import (
	"cmp"
	"slices"

	"github.com/tasard/tasard/engine"
)

// fieldQuote is the fields of one quote: for each side the locators to try in order.
type fieldQuote struct {
	target Target
	from   engine.Date // of the first field; earlier days are skipped
	places map[Side][]*Locator
}

// fieldQuotes groups fields by quote, in the order of the definition.
func fieldQuotes(fields []Field) []*fieldQuote {
	var quotes []*fieldQuote
	known := map[Target]*fieldQuote{}
	for i := range fields {
		field := &fields[i]
		target := Target{Currency: field.Currency, Channel: field.Channel}
		quote := known[target]
		if quote == nil {
			quote = &fieldQuote{target: target, from: field.From, places: map[Side][]*Locator{}}
			known[target] = quote
			quotes = append(quotes, quote)
		}
		quote.places[field.Side] = append(quote.places[field.Side], &field.Locator)
	}
	return quotes
}

// readFields reads the fields of a document and notes the missing ones.
func (r *parser) readFields(s scope) {
	for _, fields := range fieldQuotes(r.page.Extract.Fields) {
		buy, sell := r.fieldSides(s, fields)
		key, both := r.keyOf(fields.target), fields.places[BothSides]
		r.noteMissing(key, buy, slices.Concat(fields.places[BuySide], both), "buy")
		r.noteMissing(key, sell, slices.Concat(fields.places[SellSide], both), "sell")
		r.addQuote(key, buy, sell)
	}
}

func (r *parser) noteMissing(key quoteKey, value side, places []*Locator, name string) {
	if value.status == statusMissing && len(places) > 0 && places[0] != nil {
		r.notes.add("%s %s: there is no %s %s", key.institution, key.currency, name, places[0].describe())
	}
}

func (r *parser) fieldSides(s scope, fields *fieldQuote) (buy, sell side) {
	currency := cmp.Or(fields.target.Currency, r.page.Currency)
	if places := fields.places[BothSides]; len(places) > 0 {
		both := r.firstPrice(s, places, currency, "value")
		return both, both
	}
	return r.firstPrice(s, fields.places[BuySide], currency, "buy"), r.firstPrice(s, fields.places[SellSide], currency, "sell")
}

// firstPrice returns the first price at the locators; without one, the best of the other findings.
func (r *parser) firstPrice(s scope, places []*Locator, currency, name string) side {
	var best side
	for _, place := range places {
		value := r.valueAt(s, place, currency)
		switch {
		case value.conflict:
			failf(Value, "%s of %s %s is %s", name, currency, place.describe(), value.text)
		case value.status == statusPrice:
			if best.status == statusUnreadable {
				r.notes.add("%s: %s is not a %s; taken from the next place, %s", currency, quoted(best.text), name, place.describe())
			}
			return value
		case value.status > best.status:
			best = value
		}
	}
	return best
}
