package engine

import "time"

// CurrencySnapshot is the state of one currency at one time, immutable. View adds what depends on the clock.
type CurrencySnapshot struct {
	currency   string
	catalogue  *Catalogue
	quotes     []*quote // in list order; some may have no source quote
	days       []*day   // by date
	quarantine []Quarantined
	slots      []AnsweredSlot

	lastQuarantineID uint64
}

// Currency returns the currency's code.
func (s *CurrencySnapshot) Currency() string { return s.currency }

// Quarantine returns the observations in quarantine, oldest first.
func (s *CurrencySnapshot) Quarantine() []Quarantined { return s.quarantine }

// HasRates reports that a rate was ever published, possibly one of an institution that is now inactive.
func (s *CurrencySnapshot) HasRates() bool { return len(s.days) > 0 }

// Saved returns the state in the form that is written to snapshots and backups. It copies the whole history, so the
// owner of the state should leave it to another goroutine.
func (s *CurrencySnapshot) Saved() SavedCurrency {
	out := SavedCurrency{Currency: s.currency, Quarantine: s.quarantine, LastQuarantineID: s.lastQuarantineID, Slots: s.slots}
	for _, q := range s.quotes {
		for _, quote := range q.sourceQuotes {
			out.SourceQuotes = append(out.SourceQuotes, *quote)
		}
		out.Pending = append(out.Pending, q.pending...)
	}
	for _, day := range s.days {
		out.History = append(out.History, day.rows...)
	}
	return out
}

// Freshness returns when a source last confirmed a quote, and when the last quote of an active institution expires:
// until then a current rate is published. Both are zero without quotes.
func (s *CurrencySnapshot) Freshness() (checkedAt, freshUntil time.Time) {
	for _, q := range s.quotes {
		institution, known := s.catalogue.Institution(q.key.Institution)
		for _, quote := range q.sourceQuotes {
			if quote.LastCheckedAt.After(checkedAt) {
				checkedAt = quote.LastCheckedAt
			}
			if known && institution.Active && quote.ExpiresAt.After(freshUntil) {
				freshUntil = quote.ExpiresAt
			}
		}
	}
	return checkedAt, freshUntil
}
