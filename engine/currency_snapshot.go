package engine

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"
)

// CurrencySnapshot is an immutable copy of the state of one currency. For data that depends on the time, such as which
// rates are stale, use MarketView.
type CurrencySnapshot struct {
	contents
	currency   string
	catalogue  *Catalogue
	checkedAt  time.Time // see Freshness
	freshUntil time.Time
	newestView atomic.Pointer[currencyView] // the view that was made most recently; nil at first
}

// Currency returns the currency's code.
func (s *CurrencySnapshot) Currency() string { return s.currency }

// Quarantine returns the refused observations in quarantine, oldest first.
func (s *CurrencySnapshot) Quarantine() []Quarantined { return s.quarantine }

// HasRates reports whether any rate was ever published, including rates of institutions that are now inactive.
func (s *CurrencySnapshot) HasRates() bool { return len(s.days) > 0 }

// HasReference reports whether a source has given a reference rate, which may have expired.
func (s *CurrencySnapshot) HasReference() bool {
	return slices.ContainsFunc(s.quotes, func(q *quote) bool { return q.key.Kind == Reference && q.preferred != nil })
}

// Saved returns the state for backups and for snapshots of the log. It copies the whole history, so do not call it on
// the goroutine that owns the CurrencyState.
func (s *CurrencySnapshot) Saved() SavedCurrency {
	saved := SavedCurrency{Currency: s.currency, Quarantine: s.quarantine, LastQuarantineID: s.lastQuarantineID, Slots: s.slots}
	for _, q := range s.quotes {
		for _, quote := range q.sourceQuotes {
			saved.SourceQuotes = append(saved.SourceQuotes, *quote)
		}
		saved.Pending = append(saved.Pending, q.pending...)
	}
	for _, day := range s.days {
		for _, row := range day.rows {
			saved.History = append(saved.History, *row)
		}
	}
	return saved
}

// Freshness returns the latest time at which a source confirmed any quote, and the latest expiry of a quote of an
// active institution. Both are zero if there are no quotes.
func (s *CurrencySnapshot) Freshness() (checkedAt, freshUntil time.Time) {
	return s.checkedAt, s.freshUntil
}

func (s *CurrencySnapshot) setFreshness() {
	for _, q := range s.quotes {
		institution, known := s.catalogue.Institution(q.key.Institution)
		for _, quote := range q.sourceQuotes {
			if quote.LastCheckedAt.After(s.checkedAt) {
				s.checkedAt = quote.LastCheckedAt
			}
			if known && institution.Active && quote.ExpiresAt.After(s.freshUntil) {
				s.freshUntil = quote.ExpiresAt
			}
		}
	}
}

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
