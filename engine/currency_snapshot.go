package engine

import (
	"time"
)

// CurrencySnapshot is the immutable state of one currency. What is stale depends on the clock, so a board is looked at through a RankedView.
type CurrencySnapshot struct {
	currency   string
	catalogue  *Catalogue
	quotes     []*quote      // in list order (P4); some may have no offer
	days       []*day        // by date
	quarantine []Quarantined // oldest first
	slots      []AnsweredSlot

	lastQuarantineID uint64
}

// Currency is the code of the board's currency.
func (b *CurrencySnapshot) Currency() string { return b.currency }

// Quarantine is the quarantine, oldest first.
func (b *CurrencySnapshot) Quarantine() []Quarantined { return b.quarantine }

// Saved is the book as a snapshot keeps it. It copies the history, so it is for whoever has time: not for the book's owner.
func (b *CurrencySnapshot) Saved() SavedCurrency {
	out := SavedCurrency{Currency: b.currency, Quarantine: b.quarantine, LastQuarantineID: b.lastQuarantineID, Slots: b.slots}
	for _, q := range b.quotes {
		for _, offer := range q.sourceQuotes {
			out.SourceQuotes = append(out.SourceQuotes, *offer)
		}
		out.Pending = append(out.Pending, q.pending...)
	}
	for _, day := range b.days {
		out.History = append(out.History, day.rows...)
	}
	return out
}

// Rates is the part of the published rates that a query asks for.
func (v *RankedView) Rates(q RatesQuery) *Page[*Rate] { return ratesPage([]*RankedView{v}, q) }

// ratesPage lists several currencies one after the other; views are sorted by currency.
func ratesPage(views []*RankedView, q RatesQuery) *Page[*Rate] {
	cut := pager[*Rate]{request: q.PageRequest}
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
			rates = view.ofInstitution(q.Institution)
		}
		addMatching(&cut, rates, &rest)
	}
	return cut.page(changesAt)
}

// Ranking is the part of the ranking that a query asks for.
func (v *RankedView) Ranking(q RankingQuery) *Page[*Rate] {
	if q.Kind == "" {
		q.Kind = Commercial
	}
	if q.Kind == Reference && !q.ForConvert { // S5
		return newPage[*Rate](nil, 0, q.PageRequest, time.Time{})
	}
	list := v.toBuy
	if q.Operation == Sell {
		list = v.toSell
	}
	cut := pager[*Rate]{request: q.PageRequest}
	addMatching(&cut, list, &q.Filter)
	return cut.page(v.changesAt)
}

// pager takes the matches of a list one by one and keeps those of the page (P1, P2).
type pager[T any] struct {
	request PageRequest
	total   int
	items   []T
}

func (c *pager[T]) add(item T) {
	if c.total >= c.request.Cursor && len(c.items) < c.request.Limit {
		c.items = append(c.items, item)
	}
	c.total++
}

func (c *pager[T]) page(changesAt time.Time) *Page[T] {
	return newPage(c.items, c.total, c.request, changesAt)
}

// addMatching adds the rates that match.
func addMatching(c *pager[*Rate], rates []*Rate, f *Filter) {
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
func newPage[T any](items []T, total int, cut PageRequest, changesAt time.Time) *Page[T] {
	next := cut.Cursor + len(items)
	if next >= total || next > CursorMax || len(items) == 0 {
		next = NoNextCursor
	}
	return &Page[T]{Items: items, Total: total, NextCursor: next, ChangesAt: changesAt}
}

// FreshUntil is when the last offer of an active institution expires: until then something current is published. Zero without offers.
func (b *CurrencySnapshot) FreshUntil() time.Time {
	var until time.Time
	for _, q := range b.quotes {
		if institution, known := b.catalogue.Institution(q.key.Institution); !known || !institution.Active { // P7
			continue
		}
		for _, offer := range q.sourceQuotes {
			if offer.ExpiresAt.After(until) {
				until = offer.ExpiresAt
			}
		}
	}
	return until
}

// LastCheckedAt is when a source was heard last, zero without offers.
func (b *CurrencySnapshot) LastCheckedAt() time.Time {
	var seen time.Time
	for _, q := range b.quotes {
		for _, offer := range q.sourceQuotes {
			if offer.LastCheckedAt.After(seen) {
				seen = offer.LastCheckedAt
			}
		}
	}
	return seen
}
