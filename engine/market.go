package engine

import (
	"cmp"
	"slices"
	"time"
)

// market is the published and fresh (not expired) commercial quotes of one currency at one time, sorted by price. The
// quoteStore keeps it between refreshes. Making it for each refresh would cost time in the square of the number of
// institutions.
type market struct {
	known       bool      // false: the other fields are not set
	from, until time.Time // the period in which exactly these quotes are fresh; zero until = no end
	buys, sells []marketPrice
	reference   *SourceQuote // newest reference rate, fresh or not; nil = none yet
}

// marketPrice is one side of a quote.
type marketPrice struct {
	units int64 // Decimal.units
	quote *SourceQuote
}

func comparePrices(a, b marketPrice) int {
	return cmp.Or(cmp.Compare(a.units, b.units), a.quote.Key.Compare(b.quote.Key))
}

// marketAt returns the market at a time. The store keeps it, so the caller must not change it.
func (s *quoteStore) marketAt(t time.Time) *market {
	m := s.market
	if m.validAt(t) {
		return m
	}
	*m = market{known: true, from: t, buys: m.buys[:0], sells: m.sells[:0]}
	for _, q := range s.quotes {
		m.include(q, t)
	}
	return m
}

func (m *market) validAt(t time.Time) bool {
	return m.known && !t.Before(m.from) && (m.until.IsZero() || t.Before(m.until))
}

// include adds the quote if it is fresh. It also limits until to the time at which the quote becomes fresh or stale.
func (m *market) include(q *quote, t time.Time) {
	if q.key.Kind == Reference {
		m.includeReference(q, t)
		return
	}
	published := q.published(t)
	switch {
	case published == nil || published.staleAt(t): // also at all later times
	case published.LastCheckedAt.After(t):
		m.until = earlier(m.until, published.LastCheckedAt)
	default:
		m.until = earlier(m.until, published.ExpiresAt)
		m.add(published)
	}
}

func (m *market) add(quote *SourceQuote) {
	m.buys, m.sells = addPrice(m.buys, quote.Buy, quote), addPrice(m.sells, quote.Sell, quote)
}

func addPrice(list []marketPrice, price Decimal, quote *SourceQuote) []marketPrice {
	if price.IsNull() {
		return list
	}
	p := marketPrice{price.units, quote}
	i, _ := slices.BinarySearchFunc(list, p, comparePrices)
	return slices.Insert(list, i, p)
}

func (m *market) remove(quote *SourceQuote) {
	m.buys, m.sells = removePrice(m.buys, quote.Buy, quote), removePrice(m.sells, quote.Sell, quote)
}

func removePrice(list []marketPrice, price Decimal, quote *SourceQuote) []marketPrice {
	if i, found := slices.BinarySearchFunc(list, marketPrice{price.units, quote}, comparePrices); found && list[i].quote == quote {
		return slices.Delete(list, i, i+1)
	}
	return list
}

func (m *market) includeReference(q *quote, t time.Time) {
	for _, source := range q.sourceQuotes {
		switch newest := m.reference; {
		case source.LastCheckedAt.After(t):
			m.until = earlier(m.until, source.LastCheckedAt)
		case newest == nil || newest.Key == source.Key && newest.SourceID == source.SourceID || source.newerThan(newest):
			m.reference = source
		}
	}
}

// newerThan orders quotes by time, then by key and source, so that the order of arrival does not matter.
func (q *SourceQuote) newerThan(other *SourceQuote) bool {
	return cmp.Or(q.LastCheckedAt.Compare(other.LastCheckedAt), other.Key.Compare(q.Key), cmp.Compare(other.SourceID, q.SourceID)) > 0
}

// Call removeQuote before a change of a quote, and addQuote after it. t is the time of the change.
func (m *market) removeQuote(q *quote) {
	for _, source := range q.sourceQuotes {
		m.remove(source)
	}
}

func (m *market) addQuote(q *quote, t time.Time) {
	if m.known = m.validAt(t); m.known { // otherwise the next marketAt makes a new market
		m.from = t
		m.include(q, t)
	}
}

func (m *market) side(name Operation) []marketPrice {
	if name == Buy {
		return m.buys
	}
	return m.sells
}

// median returns the median price of one side, or null if fewer than count quotes have the side.
func (m *market) median(name Operation, count int) Decimal {
	prices := m.side(name)
	if len(prices) < max(count, 1) {
		return Decimal{}
	}
	return decimalOf(prices[len(prices)/2].units)
}

// consensus returns the median price of one side, and whether enough institutions (Rules.MedianQuotesMin) agree: they
// have a price near the median, each in a different source. One page can be wrong about many institutions.
func (m *market) consensus(name Operation, rules Rules) (Decimal, bool) {
	prices, median := m.side(name), m.median(name, rules.MedianQuotesMin)
	if median.IsNull() {
		return Decimal{}, false
	}
	var by witnesses
	for _, p := range prices {
		if within(decimalOf(p.units), median, rules.JumpPermille) {
			by.add(p.quote.Key.Institution, p.quote.SourceID)
		}
	}
	return median, by.count() >= rules.MedianQuotesMin
}

// witnesses are the institutions with similar values, and the sources of these values.
type witnesses struct{ institutions, sources []string }

func (w *witnesses) add(institution, source string) {
	if !slices.Contains(w.institutions, institution) {
		w.institutions = append(w.institutions, institution)
	}
	if !slices.Contains(w.sources, source) {
		w.sources = append(w.sources, source)
	}
}

// count returns the number of independent witnesses. Several institutions in one source count once. Several sources for
// one institution also count once.
func (w *witnesses) count() int { return min(len(w.institutions), len(w.sources)) }

// measure compares the prices of one institution with those of the others.
type measure struct {
	rules       Rules
	institution string
	since       time.Time // quotes checked before this time do not count; zero = all count
}

// counts reports whether a price belongs to another institution and is new enough.
func (u measure) counts(p marketPrice) bool {
	return p.quote.Key.Institution != u.institution && !p.quote.LastCheckedAt.Before(u.since)
}

// middle returns the median of the other institutions' prices, and the price beside the median in the direction of
// value. If half of the market has moved, that neighbour is in the half of value, so that neither half contradicts the
// other. ok is false if fewer than Rules.MedianQuotesMin other institutions have a price.
func (u measure) middle(prices []marketPrice, value Decimal) (median, beside Decimal, ok bool) {
	count, institutions, last := 0, 0, [3]string{}
	for _, p := range prices {
		if !u.counts(p) {
			continue
		}
		count++
		if id := p.quote.Key.Institution; institutions < u.rules.MedianQuotesMin && !slices.Contains(last[:min(institutions, len(last))], id) {
			last[min(institutions, len(last)-1)] = id
			institutions++
		}
	}
	if count == 0 || institutions < u.rules.MedianQuotesMin {
		return Decimal{}, Decimal{}, false
	}
	rank, below, above := 0, int64(0), int64(0)
	for _, p := range prices {
		if !u.counts(p) {
			continue
		}
		switch rank {
		case count/2 - 1:
			below = p.units
		case count / 2:
			median = decimalOf(p.units)
		case count/2 + 1:
			above = p.units
		}
		rank++
	}
	switch {
	case value.units < median.units && count > 1:
		beside = decimalOf(below)
	case value.units > median.units && count%2 == 1 && count > 1:
		beside = decimalOf(above)
	default:
		beside = median
	}
	return median, beside, true
}

// ownQuotesMax is an upper bound of one institution's quotes in the market.
const ownQuotesMax = 8

// nearMiddle reports whether a price is near the median whichever quotes count (see counts). This is true of most
// prices, and saves the search for the median.
func (u measure) nearMiddle(prices []marketPrice, value Decimal) bool {
	lowest, highest := 0, len(prices)-1
	if middle := len(prices) / 2; u.since.IsZero() && middle > ownQuotesMax {
		lowest, highest = middle-ownQuotesMax, middle+ownQuotesMax-1
	}
	return highest >= 0 && within(value, decimalOf(prices[lowest].units), u.rules.MedianPermille) &&
		within(value, decimalOf(prices[highest].units), u.rules.MedianPermille)
}

// contradicts reports whether a price is too far from the other institutions' median, and returns the median.
func (u measure) contradicts(prices []marketPrice, value Decimal) (Decimal, bool) {
	if value.IsNull() || u.nearMiddle(prices, value) {
		return Decimal{}, false
	}
	median, beside, ok := u.middle(prices, value)
	return median, ok && !within(value, median, u.rules.MedianPermille) && !within(value, beside, u.rules.MedianPermille)
}

// supports reports whether a price is near the other institutions' median.
func (u measure) supports(prices []marketPrice, value Decimal) bool {
	median, _, ok := u.middle(prices, value)
	return ok && within(value, median, u.rules.JumpPermille)
}

// contradicted returns a text about the first side of a value that the market contradicts, or "".
func (m *market) contradicted(u measure, value bidAsk) string {
	for _, name := range []Operation{Buy, Sell} {
		if median, wrong := u.contradicts(m.side(name), value.of(name)); wrong {
			return wrongSide(name, value.of(name), u.rules.MedianPermille, median.String()+", the median of the other institutions")
		}
	}
	return ""
}
