package engine

import (
	"cmp"
	"slices"
	"time"
)

// RankedView is a CurrencySnapshot at one instant: which rates are published, which of them are stale and how they
// rank. It is immutable and holds from that instant until ChangesAt.
type RankedView struct {
	currency  string
	snapshot  *CurrencySnapshot
	from      time.Time
	entries   []viewEntry // one for each quote of the snapshot, in the same order
	rates     []*Rate     // in list order
	toBuy     []*Rate     // current rates with a sell side, lowest first
	toSell    []*Rate     // current rates with a buy side, highest first
	current   int         // rates that are not stale
	changesAt time.Time
}

type viewEntry struct {
	quote *quote
	rate  *Rate // nil when nothing is published
}

// stepsPerRank is the cost of sorting one rate, in steps of a yielder.
const stepsPerRank = 2

// View returns the view at an instant. It reuses what is still valid of old, a view of any snapshot of the same
// CurrencyState, which may be nil; the result does not depend on it.
func (s *CurrencySnapshot) View(old *RankedView, now time.Time) *RankedView {
	return s.view(old, now, &yielder{})
}

func (s *CurrencySnapshot) view(old *RankedView, now time.Time, y *yielder) *RankedView {
	if old == nil || old.currency != s.currency || now.Before(old.from) { // after a step back expired rates are current again
		old = &RankedView{}
	}
	if old.snapshot == s && old.holds(now) {
		return old
	}
	view := &RankedView{
		currency: s.currency, snapshot: s, from: now,
		entries: make([]viewEntry, len(s.quotes)), rates: make([]*Rate, 0, len(s.quotes)),
	}
	b := viewBuilder{now: now, old: old.entries, oldCurrent: old.current}
	for i, q := range s.quotes {
		y.step(q.weight())
		rate := b.rate(s, q)
		view.entries[i] = viewEntry{q, rate}
		if rate != nil {
			view.add(rate)
		}
	}
	for _, entry := range b.old {
		b.remove(entry.rate)
	}
	y.step(stepsPerRank * len(b.added))
	view.toBuy = b.ranked(Buy, old.toBuy)
	y.step(stepsPerRank * len(b.added))
	view.toSell = b.ranked(Sell, old.toSell)
	return view
}

func (v *RankedView) holds(now time.Time) bool {
	return !now.Before(v.from) && (v.changesAt.IsZero() || now.Before(v.changesAt))
}

func (v *RankedView) add(rate *Rate) {
	v.rates = append(v.rates, rate)
	if !rate.Stale {
		v.current++
		v.changesAt = earlier(v.changesAt, rate.ExpiresAt)
	}
}

// earlier returns the earlier of two instants, where zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// viewBuilder derives a view from an older one. It walks the entries of both in the same order.
type viewBuilder struct {
	now        time.Time
	old        []viewEntry // the rest of the older view
	oldCurrent int         // current rates of the older view
	added      []*Rate     // rates that the older view does not have
	removed    []*Rate     // current rates of the older view that the new one does not have
}

// rate returns the published rate of a quote: that of the older view, unless the quote has changed or the rate expired.
func (b *viewBuilder) rate(s *CurrencySnapshot, q *quote) *Rate {
	var before *Rate
	for len(b.old) > 0 {
		entry := b.old[0]
		order := 0
		if entry.quote != q {
			order = entry.quote.key.Compare(q.key)
		}
		if order > 0 {
			break
		}
		b.old = b.old[1:]
		if order < 0 {
			b.remove(entry.rate)
			continue
		}
		before = entry.rate
		if entry.quote == q && (before == nil || before.Stale || b.now.Before(before.ExpiresAt)) {
			return before
		}
		b.remove(before)
		break
	}
	rate := s.rate(q, before, b.now)
	if rate != nil {
		b.added = append(b.added, rate)
	}
	return rate
}

func (b *viewBuilder) remove(rate *Rate) {
	if rate != nil && !rate.Stale { // stale rates are in no ranking
		b.removed = append(b.removed, rate)
	}
}

// ranked returns the older ranking without the rates that were removed and with those that were added.
func (b *viewBuilder) ranked(operation Operation, old []*Rate) []*Rate {
	var entering []*Rate
	for _, rate := range b.added {
		if !rate.Stale && !rate.Side(operation).IsNull() {
			entering = append(entering, rate)
		}
	}
	if len(entering) == 0 && len(b.removed) == 0 {
		return old
	}
	slices.SortFunc(entering, func(a, b *Rate) int { return compareRanked(operation, a, b) })
	return mergeRanked(operation, b.remaining(old), entering)
}

func (b *viewBuilder) remaining(old []*Rate) []*Rate {
	switch len(b.removed) {
	case 0:
		return old
	case b.oldCurrent: // everything was replaced, as by a source with all institutions
		return nil
	}
	removed := make(map[*Rate]bool, len(b.removed))
	for _, rate := range b.removed {
		removed[rate] = true
	}
	remaining := make([]*Rate, 0, len(old))
	for _, rate := range old {
		if !removed[rate] {
			remaining = append(remaining, rate)
		}
	}
	return remaining
}

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

// rate returns what is published of a quote, nil when nothing is. before may be an older rate of the same quote.
func (s *CurrencySnapshot) rate(q *quote, before *Rate, now time.Time) *Rate {
	institution, known := s.catalogue.Institution(q.key.Institution)
	from := q.published(now)
	if from == nil || !known || !institution.Active {
		return nil
	}
	id := ""
	if before != nil {
		id = before.ID
	} else {
		id = q.key.ID(s.currency)
	}
	source := s.catalogue.Source(from.SourceID)
	return &Rate{
		ID: id, InstitutionID: institution.ID, InstitutionName: institution.Name,
		InstitutionType: institution.Type, Website: institution.Website, Currency: s.currency,
		Buy: from.Buy, Sell: from.Sell, Channel: from.Key.Channel, Kind: from.Key.Kind,
		EffectiveDate: from.EffectiveDate, PublishedAt: from.PublishedAt, UpstreamSource: from.UpstreamSource,
		SourceID: source.ID, SourceName: source.Name, SourceURL: source.URL,
		CollectedAt: from.CollectedAt, LastCheckedAt: from.LastCheckedAt, ExpiresAt: from.ExpiresAt,
		Priority: from.Priority, Manual: from.Manual, Stale: from.staleAt(now),
		DatePrecision: precisionOf(from.EffectiveDate, from.PublishedAt),
	}
}

// ChangesAt returns the next expiry of a published rate, zero when there is none.
func (v *RankedView) ChangesAt() time.Time { return v.changesAt }

// From returns the first instant at which the view is right.
func (v *RankedView) From() time.Time { return v.from }

// Rates returns the published rates that match.
func (v *RankedView) Rates(q RatesQuery) *Page[*Rate] { return ratesPage([]*RankedView{v}, q) }

// ratesPage lists the rates of several currencies; views are sorted by currency.
func ratesPage(views []*RankedView, q RatesQuery) *Page[*Rate] {
	p := pager[*Rate]{request: q.PageRequest}
	filter := q.Filter
	filter.Currency = "" // checked for the whole view
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
		addMatching(&p, rates, &filter)
	}
	return p.page(changesAt)
}

// Ranking returns the ranked rates that match.
func (v *RankedView) Ranking(q RankingQuery) *Page[*Rate] {
	p := pager[*Rate]{request: q.PageRequest}
	q.Kind = cmp.Or(q.Kind, Commercial)
	if q.Kind == Reference && !q.ForConvert { // official rates are not offered to anyone: best has none
		return p.page(time.Time{})
	}
	list := v.toBuy
	if q.Operation == Sell {
		list = v.toSell
	}
	addMatching(&p, list, &q.Filter)
	return p.page(v.changesAt)
}

// ofInstitution returns the rates of one institution, by which the list of one currency is sorted.
func (v *RankedView) ofInstitution(id string) []*Rate {
	from, _ := slices.BinarySearchFunc(v.rates, id, func(rate *Rate, id string) int { return cmp.Compare(rate.InstitutionID, id) })
	to := from
	for to < len(v.rates) && v.rates[to].InstitutionID == id {
		to++
	}
	return v.rates[from:to:to]
}
