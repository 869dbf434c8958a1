package suggest

import (
	"slices"

	"github.com/tasard/tasard/collectors/values"
	"github.com/tasard/tasard/engine"
)

// Known is a price that is known of a currency, for example the last one of the source, or one of the market.
type Known struct {
	Currency  string
	Buy, Sell engine.Decimal // null = unknown
}

func pricesOf(known []Known) map[quoteSide]int64 {
	prices := map[quoteSide]int64{}
	for _, k := range known {
		for side, price := range map[string]engine.Decimal{"buy": k.Buy, "sell": k.Sell} {
			if price.Units() > 0 {
				prices[quoteSide{k.Currency, "", side}] = price.Units()
			}
		}
	}
	return prices
}

// Distances from a known price, in thousandths of it.
const (
	samePermille = 20 // a price without a word is the known one
	nearPermille = 60 // a price is plausible
	farPermille  = 2 * nearPermille
	unsure       = 10 // the other side may be nearer by so much
)

func permilleBetween(a, b int64) int64 { return max(a-b, b-a) * 1000 / max(b, 1) }

// isKnown reports whether a price is about a known one of any currency and side.
func (f *finder) isKnown(units int64) bool {
	for _, price := range f.known {
		if permilleBetween(units, price) <= samePermille {
			return true
		}
	}
	return false
}

// priceOf returns the known price of a side; ok is false if it is unknown.
func (f *finder) priceOf(key quoteSide) (price int64, ok bool) {
	key.channel = ""
	price, ok = f.known[key]
	return price, ok
}

// nearKnown drops prices that are far from the known one, if another one is near and none is between.
func (f *finder) nearKnown(key quoteSide, spots []*spot) []*spot {
	price, ok := f.priceOf(key)
	isBetween := func(s *spot) bool {
		distance := permilleBetween(s.units, price)
		return distance > nearPermille && distance < farPermille
	}
	isFar := func(s *spot) bool { return permilleBetween(s.units, price) > nearPermille }
	if near := slices.DeleteFunc(slices.Clone(spots), isFar); ok && len(near) > 0 && !slices.ContainsFunc(spots, isBetween) {
		return near
	}
	return spots
}

// isFarFromKnown reports whether a price is too far from the known one, or nearer to the known price of the other side.
func (f *finder) isFarFromKnown(key quoteSide, units int64) bool {
	own, ok := f.priceOf(key)
	other, hasOther := f.priceOf(key.other())
	distance := permilleBetween(units, own)
	return ok && (distance > nearPermille || hasOther && distance > unsure && distance > 2*permilleBetween(units, other)+2)
}

// useKnown supplies the word that a price lacks, unless another price has it by its words.
func (f *finder) useKnown() {
	named := map[quoteSide]bool{}
	for _, s := range f.spots {
		key := s.key()
		key.channel = ""
		named[key] = named[key] || s.isNamed()
	}
	for _, s := range f.spots {
		if s.isNoise || s.isUnclear || s.lacks(values.AboutSide) == s.lacks(values.AboutCurrency) {
			continue
		}
		key, ok := f.supplied(s)
		if !ok || named[key] {
			continue
		}
		for about, meaning := range map[values.Topic]string{values.AboutSide: key.side, values.AboutCurrency: key.currency} {
			if s.lacks(about) {
				s.words[about] = values.Word{Topic: about, Meaning: meaning}
				s.reasons = append(s.reasons, string(about)+" by the known price")
			}
		}
	}
}

// supplied returns the currency and side of the only known price that a price without one of them is near to.
func (f *finder) supplied(s *spot) (fit quoteSide, ok bool) {
	own, currencies, fits := s.key(), map[string]bool{}, 0
	for key, price := range f.known {
		currencies[key.currency] = true
		distance := permilleBetween(s.units, price)
		other, hasOther := f.known[key.other()]
		isNearer := own.side == key.side || !hasOther || 2*distance < permilleBetween(s.units, other)
		isOther := own.currency != "" && own.currency != key.currency || own.side != "" && own.side != key.side
		if !isOther && isNearer && distance <= samePermille {
			fit, fits = key, fits+1
		}
	}
	// Of several currencies each may have the price of another.
	return fit, fits == 1 && (own.currency != "" || len(currencies) == 1)
}
