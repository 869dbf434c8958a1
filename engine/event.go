package engine

import "time"

// Event is a change of one currency's state. CurrencyState.Decide returns it, and it is written to the log. When it is
// durable, and in every replay, CurrencyState.Apply applies it.
type Event interface {
	CurrencyCode() string
}

// Refreshed has the changes of one refresh of one source in one currency.
type Refreshed struct {
	Currency       string
	SourceID       string
	ObservedAt     time.Time
	Priority       int64
	Manual         bool
	UpstreamSource string
	Slot           time.Time // zero if the refresh was not scheduled; may be the only change
	By             string    // the operator, or "" for a collected refresh
	Currencies     int       // number of currencies in the refresh, if Slot is set
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
	Backfill      bool // older than the source's last observation, so only added to history
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

// Withdrawn removes the quote of one source, usually a manual rate that an operator withdraws.
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

// SourceQuote is the last accepted quote of one source. Of the source quotes with the same key, the one with the
// highest precedence is published.
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

// PendingConfirmation is a value that was refused as implausible. The source can confirm it by repeating it.
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
