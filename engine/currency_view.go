package engine

import (
	"cmp"
	"slices"
	"time"
)

// currencyView is the published rates of a CurrencySnapshot at one time, with their ranking and stale rates marked. It
// is immutable and valid from that time until changesAt.
type currencyView struct {
	currency  string
	from      time.Time
	rates     []*Rate // sorted by quote key
	toBuy     []*Rate // current rates with a sell side, lowest first
	toSell    []*Rate // current rates with a buy side, highest first
	current   int     // number of rates that are not stale
	changesAt time.Time
}

// view returns the view at a time. The snapshot caches the newest view while it is valid.
func (s *CurrencySnapshot) view(now time.Time) *currencyView {
	if view := s.newestView.Load(); view != nil && validAt(now, view.from, view.changesAt) {
		return view
	}
	view := s.makeView(now)
	s.newestView.Store(view)
	return view
}

func (s *CurrencySnapshot) makeView(now time.Time) *currencyView {
	view := &currencyView{currency: s.currency, from: now, rates: make([]*Rate, 0, len(s.quotes))}
	for _, q := range s.quotes {
		rate := s.rate(q, now)
		if rate == nil {
			continue
		}
		view.rates = append(view.rates, rate)
		if rate.Stale {
			continue
		}
		view.current++
		view.changesAt = earlier(view.changesAt, rate.ExpiresAt)
		if !rate.Sell.IsNull() {
			view.toBuy = append(view.toBuy, rate)
		}
		if !rate.Buy.IsNull() {
			view.toSell = append(view.toSell, rate)
		}
	}
	slices.SortFunc(view.toBuy, func(a, b *Rate) int { return compareRanked(Buy, a, b) })
	slices.SortFunc(view.toSell, func(a, b *Rate) int { return compareRanked(Sell, a, b) })
	return view
}

// validAt reports whether a view is valid now: not before the time from, because the clock may be set back, and only
// until changesAt. A zero changesAt means that the view does not change.
func validAt(now, from, changesAt time.Time) bool {
	return !now.Before(from) && (changesAt.IsZero() || now.Before(changesAt))
}

// earlier returns the earlier of two times, where zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// rate returns the published rate of a quote, or nil.
func (s *CurrencySnapshot) rate(q *quote, now time.Time) *Rate {
	institution, known := s.catalogue.Institution(q.key.Institution)
	published := q.published(now)
	if published == nil || !known || !institution.Active {
		return nil
	}
	source := s.catalogue.Source(published.SourceID)
	return &Rate{
		ID: q.key.ID(s.currency), InstitutionID: institution.ID, InstitutionName: institution.Name,
		InstitutionType: institution.Type, Website: institution.Website, Currency: s.currency,
		Buy: published.Buy, Sell: published.Sell, Channel: published.Key.Channel, Kind: published.Key.Kind,
		EffectiveDate: published.EffectiveDate, PublishedAt: published.PublishedAt, UpstreamSource: published.UpstreamSource,
		SourceID: source.ID, SourceName: source.Name, SourceURL: source.URL,
		CollectedAt: published.CollectedAt, LastCheckedAt: published.LastCheckedAt, ExpiresAt: published.ExpiresAt,
		Priority: published.Priority, Manual: published.Manual, Stale: published.staleAt(now),
		DatePrecision: precisionOf(published.EffectiveDate, published.PublishedAt),
	}
}

// ofInstitution returns the rates of one institution. v.rates is sorted by institution.
func (v *currencyView) ofInstitution(id string) []*Rate {
	start, _ := slices.BinarySearchFunc(v.rates, id, func(rate *Rate, id string) int { return cmp.Compare(rate.InstitutionID, id) })
	end := start
	for end < len(v.rates) && v.rates[end].InstitutionID == id {
		end++
	}
	return v.rates[start:end:end]
}
