package engine

import (
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
