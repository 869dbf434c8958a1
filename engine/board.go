package engine

import (
	"slices"
	"time"
)

// Board is the immutable state of one currency. What is stale depends on the clock, so a board is looked at through View.
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
		out.Offers = append(out.Offers, q.offers...)
		out.Suspects = append(out.Suspects, q.suspects...)
	}
	for _, day := range b.days {
		out.History = append(out.History, day.rows...)
	}
	return out
}

// View is how the board stands at one instant: which offer is published for each quote, what is stale, who ranks where. It is
// right for every instant from now until ChangesAt.
type View struct {
	currency  string
	rates     []*Rate // in list order (P4)
	toBuy     []*Rate // current, venta present, best for a caller who buys first (S2–S4)
	toSell    []*Rate
	changesAt time.Time
}

// View is a pure function of the board and the instant.
func (b *Board) View(now time.Time) *View {
	view := &View{currency: b.currency}
	for _, q := range b.quotes {
		offer, any := q.published(now)
		institution, known := b.catalogue.Institution(q.key.Institution)
		if !any || !known || !institution.Active { // P7
			continue
		}
		view.add(b.rate(institution, &offer, now))
	}
	view.toBuy = ranked(view.rates, Buy)
	view.toSell = ranked(view.rates, Sell)
	return view
}

func (v *View) add(rate *Rate) {
	v.rates = append(v.rates, rate)
	if !rate.Stale {
		v.changesAt = earlier(v.changesAt, rate.ExpiresAt)
	}
}

// earlier is the earlier of two instants, where zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func ranked(rates []*Rate, operation Operation) []*Rate {
	var out []*Rate
	for _, rate := range rates {
		if !rate.Stale && !rate.Side(operation).IsNull() {
			out = append(out, rate)
		}
	}
	slices.SortFunc(out, func(a, b *Rate) int { return compareRanked(operation, a, b) })
	return out
}

func (b *Board) rate(institution *Institution, offer *Offer, now time.Time) *Rate {
	source := b.catalogue.Source(offer.SourceID)
	return &Rate{
		ID: offer.Key.ID(b.currency), InstitutionID: institution.ID, InstitutionName: institution.Name,
		InstitutionType: institution.Type, Website: institution.Website, Currency: b.currency,
		Buy: offer.Buy, Sell: offer.Sell, Channel: offer.Key.Channel, Kind: offer.Key.Kind,
		EffectiveDate: offer.EffectiveDate, PublishedAt: offer.PublishedAt, UpstreamSource: offer.UpstreamSource,
		SourceID: source.ID, SourceName: source.Name, SourceURL: source.URL,
		CollectedAt: offer.CollectedAt, LastCheckedAt: offer.LastCheckedAt, ExpiresAt: offer.ExpiresAt,
		Priority: offer.Priority, Manual: offer.Manual, Stale: offer.staleAt(now),
		DatePrecision: precisionOf(offer.EffectiveDate, offer.PublishedAt),
	}
}

// ChangesAt is the next expiry of a published rate, zero when none is ahead.
func (v *View) ChangesAt() time.Time { return v.changesAt }

// Empty reports that nothing is published.
func (v *View) Empty() bool { return len(v.rates) == 0 }

// Rates is the part of the published rates that a query asks for.
func (v *View) Rates(q RatesQuery) *Page[*Rate] { return ratesPage([]*View{v}, q) }

// ratesPage lists several currencies one after the other; views are sorted by currency.
func ratesPage(views []*View, q RatesQuery) *Page[*Rate] {
	var matches []*Rate
	var changesAt time.Time
	for _, view := range views {
		if q.Currency != "" && q.Currency != view.currency {
			continue
		}
		changesAt = earlier(changesAt, view.changesAt)
		for _, rate := range view.rates {
			if q.matches(rate) {
				matches = append(matches, rate)
			}
		}
	}
	return pageOf(matches, q.Cut, changesAt)
}

// Ranking is the part of the ranking that a query asks for.
func (v *View) Ranking(q RankingQuery) *Page[*Rate] {
	if q.Kind == "" {
		q.Kind = Commercial
	}
	if q.Kind == Reference && !q.Comparing { // S5
		return pageOf[*Rate](nil, q.Cut, time.Time{})
	}
	list := v.toBuy
	if q.Operation == Sell {
		list = v.toSell
	}
	var matches []*Rate
	for _, rate := range list {
		if q.matches(rate) {
			matches = append(matches, rate)
		}
	}
	return pageOf(matches, q.Cut, v.changesAt)
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

// pageOf cuts a list of all matches (P1, P2).
func pageOf[T any](matches []T, cut Cut, changesAt time.Time) *Page[T] {
	from := min(cut.Cursor, len(matches))
	to := min(from+cut.Limit, len(matches))
	return newPage(slices.Clone(matches[from:to]), len(matches), cut, changesAt)
}

// newPage completes a page whose items are cut already.
func newPage[T any](items []T, total int, cut Cut, changesAt time.Time) *Page[T] {
	next := cut.Cursor + len(items)
	if next >= total || next > CursorMax || len(items) == 0 {
		next = NoNext
	}
	return &Page[T]{Items: items, Total: total, Next: next, ChangesAt: changesAt}
}
