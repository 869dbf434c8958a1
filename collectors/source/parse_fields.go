package source

import (
	"cmp"

	"github.com/tasard/tasard/engine"
)

// fieldQuote is the fields of one quote, each side with its alternatives in their order.
type fieldQuote struct {
	target          Target
	from            engine.Date // of the first of them; days before it are left out
	buy, sell, both []*Place
}

// fieldQuotes puts the fields of the same quote together, in the order in which the definition names them.
func fieldQuotes(fields []Field) []*fieldQuote {
	var quotes []*fieldQuote
	known := map[Target]*fieldQuote{}
	for i := range fields {
		field := &fields[i]
		target := Target{Currency: field.Currency, Channel: field.Channel}
		quote := known[target]
		if quote == nil {
			quote = &fieldQuote{target: target, from: field.From}
			known[target] = quote
			quotes = append(quotes, quote)
		}
		switch field.Side {
		case BuySide:
			quote.buy = append(quote.buy, &field.Place)
		case SellSide:
			quote.sell = append(quote.sell, &field.Place)
		case BothSides:
			quote.both = append(quote.both, &field.Place)
		}
	}
	return quotes
}

// readFields reads the fields of a document, and tells which it has not.
func (r *reading) readFields(s scope) {
	for _, fields := range fieldQuotes(r.page.Extract.Fields) {
		buy, sell := r.fieldSides(s, fields)
		key := r.key(fields.target)
		r.noteAbsent(key, buy, cmp.Or(firstPlace(fields.buy), firstPlace(fields.both)), "buy")
		r.noteAbsent(key, sell, cmp.Or(firstPlace(fields.sell), firstPlace(fields.both)), "sell")
		r.add(key, buy, sell)
	}
}

func firstPlace(places []*Place) *Place {
	if len(places) == 0 {
		return nil
	}
	return places[0]
}

// noteAbsent tells of a value that the definition looks for and the page has not.
func (r *reading) noteAbsent(key quoteKey, value side, place *Place, name string) {
	if value.finding == absent && place != nil {
		r.notes.add("%s %s: no %s stands %s", key.institution, key.currency, name, place.place())
	}
}

func (r *reading) fieldSides(s scope, fields *fieldQuote) (buy, sell side) {
	if len(fields.both) > 0 {
		both := r.firstValue(s, fields.both, fields.target.Currency, "value")
		return both, both
	}
	return r.firstValue(s, fields.buy, fields.target.Currency, "buy"), r.firstValue(s, fields.sell, fields.target.Currency, "sell")
}

// firstValue is the price of the first alternative that has one; without any, the best of what else they say.
func (r *reading) firstValue(s scope, places []*Place, currency, name string) side {
	currency = cmp.Or(currency, r.page.Currency)
	var best side
	for _, place := range places {
		value := r.valueAt(s, place, currency)
		switch {
		case value.clash:
			fail(Value, "%s of %s %s says %s", name, currency, place.place(), value.text)
		case value.finding == priced:
			if best.finding == unread {
				r.notes.add("%s: %s is no %s; taken from the next place, %s", currency, quoted(best.text), name, place.place())
			}
			return value
		case value.finding > best.finding:
			best = value
		}
	}
	return best
}
