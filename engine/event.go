package engine

import "time"

// Event is a change of one currency's state. Decide returns events, the actor writes them to the log, and Apply changes
// the state. A replay of the log applies them again.
type Event interface {
	CurrencyCode() string
}

// Refreshed is the result of one refresh (one source's observations at one time) for one currency.
type Refreshed struct {
	Currency       string
	SourceID       string
	ObservedAt     time.Time
	Priority       int64
	Manual         bool
	UpstreamSource string
	Slot           time.Time // scheduled time of the refresh, or zero; an event may have a Slot but no Quotes
	By             string    // name of the operator, or "" for a collected refresh
	Currencies     int       // number of currencies in the whole refresh; set only with Slot
	Baseline       string    // see Refresh.Baseline; set only with Slot
	Quotes         []AcceptedQuote
	Quarantined    []Quarantined
}

// AcceptedQuote is the value of an accepted observation.
type AcceptedQuote struct {
	Key           QuoteKey
	Buy, Sell     Decimal
	EffectiveDate Date
	PublishedAt   time.Time
	ExpiresAt     time.Time
	Backfill      bool // observed before the source's newest observation, so only added to history
}

// Quarantined is a refused observation, stored until an operator releases or rejects it.
type Quarantined struct {
	ID          uint64 // consecutive number in a currency, from 1
	SourceID    string
	ObservedAt  time.Time
	Observation Observation
	Reason      Reason
	Detail      string // a sentence that explains Reason
}

// Withdrawn removes a source's value: a rate withdrawn by an operator, or contradicted by the market.
type Withdrawn struct {
	Currency string
	SourceID string
	Key      QuoteKey
	At       time.Time
	By       string
	// HistorySince is the first day from which the source's history rows with this value are removed, up to the day of
	// At. Zero: no row is removed, but any other value may replace the row of the day of At.
	HistorySince Date
	// HistoryOnly keeps the current value, and removes only the row of the day HistorySince.
	HistoryOnly bool
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

// SourceQuote is the newest accepted value of one source for a key (institution, channel and kind). Of several sources
// with the same key, the one with the highest precedence is published.
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
	Released       bool // released from quarantine by an operator, so not compared with the market
}

// PendingConfirmation is a value refused as implausible. It is accepted if the source repeats it and another
// institution has a similar value.
type PendingConfirmation struct {
	Key        QuoteKey
	SourceID   string
	ObservedAt time.Time // of the newest observation
	Buy, Sell  Decimal   // of the first observation
	Since      time.Time // time of the first observation
	Sightings  int       // number of observations within sightingPermille of the first
}

// SavedCurrency is the complete state of one currency, for snapshots and backups. Its lists are sorted, so that equal
// states have equal contents: source quotes and pending confirmations by key and source, history by date and key, slots
// by source, and the quarantine by id.
type SavedCurrency struct {
	Currency         string
	SourceQuotes     []SourceQuote
	Pending          []PendingConfirmation
	History          []HistoryEntry
	Quarantine       []Quarantined
	LastQuarantineID uint64
	Slots            []AnsweredSlot
}
