package engine

import (
	"cmp"
	"slices"
	"time"
)

// View is how a board stands at one instant: which offer is published for each quote, what is stale, who ranks where. It is right
// for every instant from then until ChangesAt.
type View struct {
	currency  string
	board     *Board
	from      time.Time
	published map[*quote]*Rate // of each quote of the board; nil: nothing is published for it
	rates     []*Rate          // in list order (P4)
	toBuy     []*Rate          // current, venta present, best for a caller who buys first (S2–S4)
	toSell    []*Rate
	current   int // rates that are not stale
	changesAt time.Time
}

// stepsInRank is how many small steps the sorting of a rate takes.
const stepsInRank = 2

// View is a pure function of the board and the instant.
func (b *Board) View(now time.Time) *View { return b.viewAfter(nil, now, &pace{}) }

// ViewAfter is the same as View, made of an older view of any board of the same book as far as it still holds. Nil is no view.
func (b *Board) ViewAfter(old *View, now time.Time) *View { return b.viewAfter(old, now, &pace{}) }

// View is Board().ViewAfter, in pieces.
func (b *Book) View(old *View, now time.Time) *View {
	return b.Board().viewAfter(old, now, b.state.pace)
}

// holds reports that the view is right at an instant.
func (v *View) holds(now time.Time) bool {
	return !now.Before(v.from) && (v.changesAt.IsZero() || now.Before(v.changesAt))
}

func (b *Board) viewAfter(old *View, now time.Time, p *pace) *View {
	if old == nil || old.currency != b.currency || now.Before(old.from) { // a clock set back makes current what had expired
		old = &View{}
	}
	if old.board == b && old.holds(now) {
		return old
	}
	view := &View{
		currency: b.currency, board: b, from: now, published: make(map[*quote]*Rate, len(b.quotes)), rates: make([]*Rate, 0, len(b.quotes)),
	}
	for _, q := range b.quotes {
		p.step(q.weight())
		rate, known := old.published[q]
		if !known || rate != nil && !rate.Stale && !now.Before(rate.ExpiresAt) {
			rate = b.published(q, now)
		}
		view.published[q] = rate
		if rate != nil {
			view.add(rate)
		}
	}
	view.toBuy, view.toSell = view.ranked(Buy, p), view.ranked(Sell, p)
	return view
}

// ranked are the current rates that have the side the operation needs, best first.
func (v *View) ranked(operation Operation, p *pace) []*Rate {
	p.step(stepsInRank * len(v.rates))
	ranked := make([]*Rate, 0, v.current)
	for _, rate := range v.rates {
		if !rate.Stale && !rate.Side(operation).IsNull() {
			ranked = append(ranked, rate)
		}
	}
	slices.SortFunc(ranked, func(a, b *Rate) int { return compareRanked(operation, a, b) })
	return ranked
}

// published is the rate that stands for a quote, nil when there is none.
func (b *Board) published(q *quote, now time.Time) *Rate {
	offer := q.published(now)
	if offer == nil {
		return nil
	}
	institution, known := b.catalogue.Institution(q.key.Institution)
	if !known || !institution.Active { // P7
		return nil
	}
	source := b.catalogue.Source(offer.SourceID)
	return &Rate{
		ID: q.key.ID(b.currency), InstitutionID: institution.ID, InstitutionName: institution.Name,
		InstitutionType: institution.Type, Website: institution.Website, Currency: b.currency,
		Buy: offer.Buy, Sell: offer.Sell, Channel: offer.Key.Channel, Kind: offer.Key.Kind,
		EffectiveDate: offer.EffectiveDate, PublishedAt: offer.PublishedAt, UpstreamSource: offer.UpstreamSource,
		SourceID: source.ID, SourceName: source.Name, SourceURL: source.URL,
		CollectedAt: offer.CollectedAt, LastCheckedAt: offer.LastCheckedAt, ExpiresAt: offer.ExpiresAt,
		Priority: offer.Priority, Manual: offer.Manual, Stale: offer.staleAt(now),
		DatePrecision: precisionOf(offer.EffectiveDate, offer.PublishedAt),
	}
}

func (v *View) add(rate *Rate) {
	v.rates = append(v.rates, rate)
	if !rate.Stale {
		v.current++
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

// ChangesAt is the next expiry of a published rate, zero when none is ahead.
func (v *View) ChangesAt() time.Time { return v.changesAt }

// of is what an institution publishes. Rates of one currency are sorted by institution.
func (v *View) of(institution string) []*Rate {
	from, _ := slices.BinarySearchFunc(v.rates, institution, func(r *Rate, id string) int { return cmp.Compare(r.InstitutionID, id) })
	to := from
	for to < len(v.rates) && v.rates[to].InstitutionID == institution {
		to++
	}
	return v.rates[from:to:to]
}
