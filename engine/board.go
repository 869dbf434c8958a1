package engine

import (
	"time"
)

// Board is the immutable state of one currency. What is stale depends on the clock, so a board is looked at through a View.
type Board struct {
	currency  string
	catalogue *Catalogue
	quotes    []*quote // in list order (P4); some may have no offer
	days      []*day   // by date
	held      []Held   // oldest first
	slots     []HeardSlot

	lastHeldID uint64
}

// Currency is the code of the board's currency.
func (b *Board) Currency() string { return b.currency }

// Held is the quarantine, oldest first.
func (b *Board) Held() []Held { return b.held }

// State is the book as a snapshot keeps it. It copies the history, so it is for whoever has time: not for the book's owner.
func (b *Board) State() BookState {
	out := BookState{Currency: b.currency, Held: b.held, LastHeldID: b.lastHeldID, Slots: b.slots}
	for _, q := range b.quotes {
		for _, offer := range q.offers {
			out.Offers = append(out.Offers, *offer)
		}
		out.Suspects = append(out.Suspects, q.suspects...)
	}
	for _, day := range b.days {
		out.History = append(out.History, day.rows...)
	}
	return out
}

// Rates is the part of the published rates that a query asks for.
func (v *View) Rates(q RatesQuery) *Page[*Rate] { return ratesPage([]*View{v}, q) }

// ratesPage lists several currencies one after the other; views are sorted by currency.
func ratesPage(views []*View, q RatesQuery) *Page[*Rate] {
	cut := cutter[*Rate]{cut: q.Cut}
	rest := q.Filter
	rest.Currency = "" // is that of the views that are looked at
	var changesAt time.Time
	for _, view := range views {
		if q.Currency != "" && q.Currency != view.currency {
			continue
		}
		changesAt = earlier(changesAt, view.changesAt)
		rates := view.rates
		if q.Institution != "" {
			rates = view.of(q.Institution)
		}
		choose(&cut, rates, &rest)
	}
	return cut.page(changesAt)
}

// Ranking is the part of the ranking that a query asks for.
func (v *View) Ranking(q RankingQuery) *Page[*Rate] {
	if q.Kind == "" {
		q.Kind = Commercial
	}
	if q.Kind == Reference && !q.Comparing { // S5
		return newPage[*Rate](nil, 0, q.Cut, time.Time{})
	}
	list := v.toBuy
	if q.Operation == Sell {
		list = v.toSell
	}
	cut := cutter[*Rate]{cut: q.Cut}
	choose(&cut, list, &q.Filter)
	return cut.page(v.changesAt)
}

// cutter takes the matches of a list one by one and keeps those of the page (P1, P2).
type cutter[T any] struct {
	cut   Cut
	total int
	items []T
}

func (c *cutter[T]) add(item T) {
	if c.total >= c.cut.Cursor && len(c.items) < c.cut.Limit {
		c.items = append(c.items, item)
	}
	c.total++
}

func (c *cutter[T]) page(changesAt time.Time) *Page[T] {
	return newPage(c.items, c.total, c.cut, changesAt)
}

// choose adds the rates that match.
func choose(c *cutter[*Rate], rates []*Rate, f *Filter) {
	for _, rate := range rates {
		if f.matches(rate) {
			c.add(rate)
		}
	}
}

func (f *Filter) matches(rate *Rate) bool {
	return (f.Currency == "" || f.Currency == rate.Currency) &&
		f.matchesKey(QuoteKey{rate.InstitutionID, rate.Channel, rate.Kind})
}

func (f *Filter) matchesKey(key QuoteKey) bool {
	return (f.Institution == "" || f.Institution == key.Institution) &&
		(f.Channel == "" || f.Channel == key.Channel) &&
		(f.Kind == "" || f.Kind == key.Kind)
}

// newPage completes a page whose items are cut already.
func newPage[T any](items []T, total int, cut Cut, changesAt time.Time) *Page[T] {
	next := cut.Cursor + len(items)
	if next >= total || next > CursorMax || len(items) == 0 {
		next = NoNext
	}
	return &Page[T]{Items: items, Total: total, Next: next, ChangesAt: changesAt}
}

// FreshUntil is when the last offer of an active institution expires: until then something current is published. Zero without offers.
func (b *Board) FreshUntil() time.Time {
	var until time.Time
	for _, q := range b.quotes {
		if institution, known := b.catalogue.Institution(q.key.Institution); !known || !institution.Active { // P7
			continue
		}
		for _, offer := range q.offers {
			if offer.ExpiresAt.After(until) {
				until = offer.ExpiresAt
			}
		}
	}
	return until
}

// SeenAt is when a source was heard last, zero without offers.
func (b *Board) SeenAt() time.Time {
	var seen time.Time
	for _, q := range b.quotes {
		for _, offer := range q.offers {
			if offer.LastCheckedAt.After(seen) {
				seen = offer.LastCheckedAt
			}
		}
	}
	return seen
}
