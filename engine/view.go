package engine

import (
	"slices"
	"time"
)

// View is how a board stands at one instant: which offer is published for each quote, what is stale, who ranks where. It is right
// for every instant from then until ChangesAt.
type View struct {
	currency  string
	board     *Board
	from      time.Time
	seats     []seat  // one for each quote of the board, in the same order
	rates     []*Rate // in list order (P4)
	toBuy     []*Rate // current, venta present, best for a caller who buys first (S2–S4)
	toSell    []*Rate
	current   int // rates that are not stale
	changesAt time.Time
}

// stepsInRank is how many small steps the sorting of a rate takes.
const stepsInRank = 2

// seat is the place of one quote.
type seat struct {
	quote *quote
	rate  *Rate // nil: nothing is published for it
}

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
		currency: b.currency, board: b, from: now, seats: make([]seat, len(b.quotes)), rates: make([]*Rate, 0, len(b.quotes)),
	}
	d := drafter{view: view, old: old.seats, before: old.current, now: now}
	for i, q := range b.quotes {
		p.step(q.weight())
		rate := d.rate(b, q)
		view.seats[i] = seat{q, rate}
		if rate != nil {
			view.add(rate)
		}
	}
	for _, rest := range d.old {
		d.leave(rest.rate)
	}
	p.step(stepsInRank * len(d.fresh))
	view.toBuy = d.ranked(Buy, old.toBuy)
	p.step(stepsInRank * len(d.fresh))
	view.toSell = d.ranked(Sell, old.toSell)
	return view
}

// drafter makes a view after an older one, whose seats it passes in the same order.
type drafter struct {
	view   *View
	now    time.Time
	before int    // current rates of the older view
	old    []seat // those that were not passed yet
	fresh  []*Rate
	left   []*Rate // current rates of the older view that the new one does not have
}

// rate is what is published for a quote: the same as before while the quote is the same and nothing of it has expired.
func (d *drafter) rate(b *Board, q *quote) *Rate {
	var before *Rate
	for len(d.old) > 0 {
		one := d.old[0]
		order := 0
		if one.quote != q {
			order = one.quote.key.Compare(q.key)
		}
		if order > 0 {
			break
		}
		d.old = d.old[1:]
		if order < 0 {
			d.leave(one.rate)
			continue
		}
		if before = one.rate; one.quote == q && (before == nil || before.Stale || d.now.Before(before.ExpiresAt)) {
			return before
		}
		d.leave(before)
		break
	}
	rate := b.published(q, before, d.now)
	if rate != nil {
		d.fresh = append(d.fresh, rate)
	}
	return rate
}

func (d *drafter) leave(rate *Rate) {
	if rate != nil && !rate.Stale { // a stale one is in no ranking
		d.left = append(d.left, rate)
	}
}

// ranked is a ranking of the older view without what has left, and with what is new.
func (d *drafter) ranked(operation Operation, old []*Rate) []*Rate {
	var entering []*Rate
	for _, rate := range d.fresh {
		if !rate.Stale && !rate.Side(operation).IsNull() {
			entering = append(entering, rate)
		}
	}
	if len(entering) == 0 && len(d.left) == 0 {
		return old
	}
	slices.SortFunc(entering, func(a, b *Rate) int { return compareRanked(operation, a, b) })
	return merged(operation, d.staying(old), entering)
}

func (d *drafter) staying(old []*Rate) []*Rate {
	switch len(d.left) {
	case 0:
		return old
	case d.before: // everything was said anew, as by a source that speaks for all
		return nil
	}
	gone := make(map[*Rate]bool, len(d.left))
	for _, rate := range d.left {
		gone[rate] = true
	}
	staying := make([]*Rate, 0, len(old))
	for _, rate := range old {
		if !gone[rate] {
			staying = append(staying, rate)
		}
	}
	return staying
}

// merged is one ranking of two.
func merged(operation Operation, a, b []*Rate) []*Rate {
	list := make([]*Rate, 0, len(a)+len(b))
	for _, rate := range a {
		for len(b) > 0 && compareRanked(operation, b[0], rate) < 0 {
			list, b = append(list, b[0]), b[1:]
		}
		list = append(list, rate)
	}
	return append(list, b...)
}

// published is the rate that stands for a quote, nil when there is none. One that stood for it before has the same id.
func (b *Board) published(q *quote, before *Rate, now time.Time) *Rate {
	offer := q.published(now)
	if offer == nil {
		return nil
	}
	institution, known := b.catalogue.Institution(q.key.Institution)
	if !known || !institution.Active { // P7
		return nil
	}
	if before != nil {
		return b.rate(before.ID, institution, offer, now)
	}
	return b.rate(q.key.ID(b.currency), institution, offer, now)
}

func (b *Board) rate(id string, institution *Institution, offer *Offer, now time.Time) *Rate {
	source := b.catalogue.Source(offer.SourceID)
	return &Rate{
		ID: id, InstitutionID: institution.ID, InstitutionName: institution.Name,
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
	from, _ := slices.BinarySearchFunc(v.rates, institution, compareOwner)
	to := from
	for to < len(v.rates) && v.rates[to].InstitutionID == institution {
		to++
	}
	return v.rates[from:to:to]
}

func compareOwner(rate *Rate, institution string) int {
	switch {
	case rate.InstitutionID < institution:
		return -1
	case rate.InstitutionID > institution:
		return 1
	}
	return 0
}
