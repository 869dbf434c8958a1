package engine

import (
	"cmp"
	"slices"
	"time"
)

// RankedView has the published rates of a CurrencySnapshot at one time and their ranking, and marks stale rates. It is
// immutable and valid from that time until ChangesAt.
type RankedView struct {
	currency  string
	snapshot  *CurrencySnapshot
	from      time.Time
	entries   []viewEntry // one for each quote of the snapshot, in the same order
	rates     []*Rate     // sorted by quote key
	toBuy     []*Rate     // current rates with a sell side, lowest first
	toSell    []*Rate     // current rates with a buy side, highest first
	current   int         // number of rates that are not stale
	changesAt time.Time
}

type viewEntry struct {
	quote *quote
	rate  *Rate // nil if the quote is not published
}

const stepsPerRank = 2 // cost of sorting one rate, in steps (see yielder)

// View returns the view at a time. old is nil or a view of any snapshot of the same CurrencyState. The valid parts of
// old are reused to save work; the result does not depend on old.
func (s *CurrencySnapshot) View(old *RankedView, now time.Time) *RankedView {
	return s.view(old, now, &yielder{})
}

func (s *CurrencySnapshot) view(old *RankedView, now time.Time, y *yielder) *RankedView {
	if old == nil || old.currency != s.currency || now.Before(old.from) { // the clock may be set back
		old = &RankedView{}
	}
	if old.snapshot == s && old.validAt(now) {
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

func (v *RankedView) validAt(now time.Time) bool {
	return !now.Before(v.from) && (v.changesAt.IsZero() || now.Before(v.changesAt))
}

func (v *RankedView) add(rate *Rate) {
	v.rates = append(v.rates, rate)
	if !rate.Stale {
		v.current++
		v.changesAt = earlier(v.changesAt, rate.ExpiresAt)
	}
}

// earlier returns the earlier of two times, where zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// viewBuilder derives a view from an older view. Both views have their entries in the same order, so one pass is
// enough.
type viewBuilder struct {
	now        time.Time
	old        []viewEntry // remaining entries of the older view
	oldCurrent int         // number of current rates in the older view
	added      []*Rate     // rates that are not in the older view
	removed    []*Rate     // current rates of the older view that are not in the new one
}

// rate returns the published rate of a quote, or nil. If the quote has not changed and the older view's rate has not
// expired since, it returns that rate.
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
	if rate != nil && !rate.Stale { // rankings have no stale rates
		b.removed = append(b.removed, rate)
	}
}

// ranked returns the new ranking: the older ranking without the rates of b.removed and with those of b.added.
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
	case b.oldCurrent: // all rates were replaced, for example by a source with all institutions
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

// rate returns the published rate of a quote, or nil. before is nil or an older rate of the quote, whose ID is reused.
func (s *CurrencySnapshot) rate(q *quote, before *Rate, now time.Time) *Rate {
	institution, known := s.catalogue.Institution(q.key.Institution)
	published := q.published(now)
	if published == nil || !known || !institution.Active {
		return nil
	}
	id := ""
	if before != nil {
		id = before.ID
	} else {
		id = q.key.ID(s.currency)
	}
	source := s.catalogue.Source(published.SourceID)
	return &Rate{
		ID: id, InstitutionID: institution.ID, InstitutionName: institution.Name,
		InstitutionType: institution.Type, Website: institution.Website, Currency: s.currency,
		Buy: published.Buy, Sell: published.Sell, Channel: published.Key.Channel, Kind: published.Key.Kind,
		EffectiveDate: published.EffectiveDate, PublishedAt: published.PublishedAt, UpstreamSource: published.UpstreamSource,
		SourceID: source.ID, SourceName: source.Name, SourceURL: source.URL,
		CollectedAt: published.CollectedAt, LastCheckedAt: published.LastCheckedAt, ExpiresAt: published.ExpiresAt,
		Priority: published.Priority, Manual: published.Manual, Stale: published.staleAt(now),
		DatePrecision: precisionOf(published.EffectiveDate, published.PublishedAt),
	}
}

// ChangesAt returns the time of the next expiry of a published rate, or zero if none will expire.
func (v *RankedView) ChangesAt() time.Time { return v.changesAt }

// From returns the time for which the view was made.
func (v *RankedView) From() time.Time { return v.from }

// Rates returns the published rates that match the query.
func (v *RankedView) Rates(q RatesQuery) *Page[*Rate] { return ratesPage([]*RankedView{v}, q) }

// ratesPage lists the rates of several currencies. views must be sorted by currency.
func ratesPage(views []*RankedView, q RatesQuery) *Page[*Rate] {
	p := pager[*Rate]{request: q.PageRequest}
	filter := q.Filter
	filter.Currency = "" // views are filtered by currency, so rates need not be
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

// Ranking returns the ranked rates that match the query.
func (v *RankedView) Ranking(q RankingQuery) *Page[*Rate] {
	p := pager[*Rate]{request: q.PageRequest}
	q.Kind = cmp.Or(q.Kind, Commercial)
	if q.Kind == Reference && !q.ForConvert { // institutions do not trade at reference rates
		return p.page(time.Time{})
	}
	list := v.toBuy
	if q.Operation == Sell {
		list = v.toSell
	}
	addMatching(&p, list, &q.Filter)
	return p.page(v.changesAt)
}

// ofInstitution returns the rates of one institution. v.rates is sorted by institution.
func (v *RankedView) ofInstitution(id string) []*Rate {
	start, _ := slices.BinarySearchFunc(v.rates, id, func(rate *Rate, id string) int { return cmp.Compare(rate.InstitutionID, id) })
	end := start
	for end < len(v.rates) && v.rates[end].InstitutionID == id {
		end++
	}
	return v.rates[start:end:end]
}
