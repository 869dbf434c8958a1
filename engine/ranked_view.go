package engine

import (
	"slices"
	"time"
)

// RankedView is how a board stands at one instant: which offer is published for each quote, what is stale, who ranks where. It is right
// for every instant from then until ChangesAt.
type RankedView struct {
	currency  string
	snapshot  *CurrencySnapshot
	from      time.Time
	entries   []viewEntry // one for each quote of the board, in the same order
	rates     []*Rate     // in list order (P4)
	toBuy     []*Rate     // current, venta present, best for a caller who buys first (S2–S4)
	toSell    []*Rate
	current   int // rates that are not stale
	changesAt time.Time
}

// stepsPerRank is how many small steps the sorting of a rate takes.
const stepsPerRank = 2

// viewEntry is the place of one quote.
type viewEntry struct {
	quote *quote
	rate  *Rate // nil: nothing is published for it
}

// RankedView is a pure function of the board and the instant.
func (b *CurrencySnapshot) View(now time.Time) *RankedView { return b.nextView(nil, now, &yielder{}) }

// NextView is the same as RankedView, made of an older view of any board of the same book as far as it still holds. Nil is no view.
func (b *CurrencySnapshot) NextView(old *RankedView, now time.Time) *RankedView {
	return b.nextView(old, now, &yielder{})
}

// RankedView is CurrencySnapshot().NextView, in pieces.
func (b *CurrencyState) View(old *RankedView, now time.Time) *RankedView {
	return b.Snapshot().nextView(old, now, b.store.yielder)
}

// holds reports that the view is right at an instant.
func (v *RankedView) holds(now time.Time) bool {
	return !now.Before(v.from) && (v.changesAt.IsZero() || now.Before(v.changesAt))
}

func (b *CurrencySnapshot) nextView(old *RankedView, now time.Time, p *yielder) *RankedView {
	if old == nil || old.currency != b.currency || now.Before(old.from) { // a clock set back makes current what had expired
		old = &RankedView{}
	}
	if old.snapshot == b && old.holds(now) {
		return old
	}
	view := &RankedView{
		currency: b.currency, snapshot: b, from: now, entries: make([]viewEntry, len(b.quotes)), rates: make([]*Rate, 0, len(b.quotes)),
	}
	d := viewBuilder{view: view, old: old.entries, oldCurrent: old.current, now: now}
	for i, q := range b.quotes {
		p.step(q.weight())
		rate := d.rate(b, q)
		view.entries[i] = viewEntry{q, rate}
		if rate != nil {
			view.add(rate)
		}
	}
	for _, rest := range d.old {
		d.remove(rest.rate)
	}
	p.step(stepsPerRank * len(d.added))
	view.toBuy = d.ranked(Buy, old.toBuy)
	p.step(stepsPerRank * len(d.added))
	view.toSell = d.ranked(Sell, old.toSell)
	return view
}

// viewBuilder makes a view after an older one, whose seats it passes in the same order.
type viewBuilder struct {
	view       *RankedView
	now        time.Time
	oldCurrent int         // current rates of the older view
	old        []viewEntry // those that were not passed yet
	added      []*Rate
	removed    []*Rate // current rates of the older view that the new one does not have
}

// rate is what is published for a quote: the same as before while the quote is the same and nothing of it has expired.
func (d *viewBuilder) rate(b *CurrencySnapshot, q *quote) *Rate {
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
			d.remove(one.rate)
			continue
		}
		if before = one.rate; one.quote == q && (before == nil || before.Stale || d.now.Before(before.ExpiresAt)) {
			return before
		}
		d.remove(before)
		break
	}
	rate := b.published(q, before, d.now)
	if rate != nil {
		d.added = append(d.added, rate)
	}
	return rate
}

func (d *viewBuilder) remove(rate *Rate) {
	if rate != nil && !rate.Stale { // a stale one is in no ranking
		d.removed = append(d.removed, rate)
	}
}

// ranked is a ranking of the older view without what has left, and with what is new.
func (d *viewBuilder) ranked(operation Operation, old []*Rate) []*Rate {
	var entering []*Rate
	for _, rate := range d.added {
		if !rate.Stale && !rate.Side(operation).IsNull() {
			entering = append(entering, rate)
		}
	}
	if len(entering) == 0 && len(d.removed) == 0 {
		return old
	}
	slices.SortFunc(entering, func(a, b *Rate) int { return compareRanked(operation, a, b) })
	return mergeRanked(operation, d.remaining(old), entering)
}

func (d *viewBuilder) remaining(old []*Rate) []*Rate {
	switch len(d.removed) {
	case 0:
		return old
	case d.oldCurrent: // everything was said anew, as by a source that speaks for all
		return nil
	}
	gone := make(map[*Rate]bool, len(d.removed))
	for _, rate := range d.removed {
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

// mergeRanked is one ranking of two.
func mergeRanked(operation Operation, a, b []*Rate) []*Rate {
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
func (b *CurrencySnapshot) published(q *quote, before *Rate, now time.Time) *Rate {
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

func (b *CurrencySnapshot) rate(id string, institution *Institution, offer *SourceQuote, now time.Time) *Rate {
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

func (v *RankedView) add(rate *Rate) {
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
func (v *RankedView) ChangesAt() time.Time { return v.changesAt }

// ofInstitution is what an institution publishes. Rates of one currency are sorted by institution.
func (v *RankedView) ofInstitution(institution string) []*Rate {
	from, _ := slices.BinarySearchFunc(v.rates, institution, compareInstitution)
	to := from
	for to < len(v.rates) && v.rates[to].InstitutionID == institution {
		to++
	}
	return v.rates[from:to:to]
}

func compareInstitution(rate *Rate, institution string) int {
	switch {
	case rate.InstitutionID < institution:
		return -1
	case rate.InstitutionID > institution:
		return 1
	}
	return 0
}
