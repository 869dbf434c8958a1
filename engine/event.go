package engine

import "time"

// Event is a change of one currency's state. It is decided once (CurrencyState.Decide), written to the log, and applied
// when it is durable and again in every replay (CurrencyState.Apply).
type Event interface {
	CurrencyCode() string
}

// Refreshed is what one refresh of one source changed in one currency.
type Refreshed struct {
	Currency       string
	SourceID       string
	ObservedAt     time.Time
	Priority       int64
	Manual         bool
	UpstreamSource string
	Slot           time.Time // zero when the refresh answers none; may be the only change
	By             string    // the operator, "" when it was collected
	Currencies     int       // that had observations in the refresh, with Slot
	Quotes         []AcceptedQuote
	Quarantined    []Quarantined
}

// AcceptedQuote is an observation that was accepted.
type AcceptedQuote struct {
	Key           QuoteKey
	Buy, Sell     Decimal
	EffectiveDate Date
	PublishedAt   time.Time
	ExpiresAt     time.Time
	Backfill      bool // older than the source's last observation: only added to history
}

// Quarantined is an observation in quarantine.
type Quarantined struct {
	ID          uint64 // consecutive within a currency, from 1
	SourceID    string
	ObservedAt  time.Time
	Observation Observation
	Reason      Reason
	Detail      string // a sentence that explains Reason
}

// Withdrawn removes the quote of one source: an operator has withdrawn a manual rate.
type Withdrawn struct {
	Currency string
	SourceID string
	Key      QuoteKey
	At       time.Time
	By       string
}

// Released publishes an observation from quarantine.
type Released struct {
	Currency       string
	QuarantineID   uint64
	SourceID       string
	ObservedAt     time.Time
	Priority       int64
	Manual         bool
	UpstreamSource string
	Quote          AcceptedQuote
	At             time.Time
	By             string
}

// Rejected removes an observation from quarantine.
type Rejected struct {
	Currency     string
	QuarantineID uint64
	At           time.Time
	By           string
}

// CurrencyCode returns the currency.
func (e *Refreshed) CurrencyCode() string { return e.Currency }

// CurrencyCode returns the currency.
func (e *Withdrawn) CurrencyCode() string { return e.Currency }

// CurrencyCode returns the currency.
func (e *Released) CurrencyCode() string { return e.Currency }

// CurrencyCode returns the currency.
func (e *Rejected) CurrencyCode() string { return e.Currency }

// SourceQuote is the last quote that one source gave. Of the source quotes with one key, that with the highest
// precedence is published.
type SourceQuote struct {
	Key            QuoteKey
	SourceID       string
	Buy, Sell      Decimal
	EffectiveDate  Date
	PublishedAt    time.Time
	UpstreamSource string
	CollectedAt    time.Time
	LastCheckedAt  time.Time
	ExpiresAt      time.Time
	Priority       int64
	Manual         bool
}

// PendingConfirmation is a value that was refused as implausible, and that the source may confirm by repeating it.
type PendingConfirmation struct {
	Key        QuoteKey
	SourceID   string
	ObservedAt time.Time
	Buy, Sell  Decimal
}

// SavedCurrency is the complete state of one currency, for snapshots and backups. Equal states are saved equally:
// source quotes and pending confirmations are sorted by key and source, history by date and key, slots by source, and
// the quarantine by id.
type SavedCurrency struct {
	Currency         string
	SourceQuotes     []SourceQuote
	Pending          []PendingConfirmation
	History          []HistoryEntry
	Quarantine       []Quarantined
	LastQuarantineID uint64
	Slots            []AnsweredSlot
}
