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

// Command asks for a change of one currency's state.
type Command interface{ command() }

// Observe adds the observations of refreshes, in the given order. All observations must be of the CurrencyState's
// currency.
type Observe struct{ Refreshes []Refresh }

// Withdraw removes one source's value for a key (institution, channel and kind).
type Withdraw struct {
	Key      QuoteKey
	SourceID string
	By       string
}

// Release publishes a refused observation from quarantine.
type Release struct {
	QuarantineID uint64
	By           string
}

// Reject removes an observation from quarantine.
type Reject struct {
	QuarantineID uint64
	By           string
}

func (Observe) command()  {}
func (Withdraw) command() {}
func (Release) command()  {}
func (Reject) command()   {}

// Rules are the limits for observations.
type Rules struct {
	// JumpPermille is the maximum change of a side (buy or sell price) from the last good value, in thousandths. The
	// last good value is the newest accepted value of the source.
	JumpPermille int64
	// MedianPermille is the maximum distance of a side from the median of the other institutions' fresh (not expired)
	// quotes, in thousandths.
	MedianPermille int64
	// MedianQuotesMin is the minimum number of other institutions for a median.
	MedianQuotesMin int
	// ReferencePermille is the maximum distance of a commercial side from the reference rate of its currency, in
	// thousandths. 0 turns the comparison off.
	ReferencePermille int64
	// LastGoodAgeMax is the maximum age of a last good value. Older ones are not used.
	LastGoodAgeMax time.Duration
	// FutureDaysMax is the maximum number of days from an observation to its effective date.
	FutureDaysMax int
	// EqualSides accepts commercial quotes with equal sides. Normally they are refused, because probably one side was
	// read twice.
	EqualSides bool
	// HistoryDays is the number of days of commercial history to keep, at least HistoryDaysMin. Reference history is
	// never dropped.
	HistoryDays int
}

// HistoryDaysMin is the number of days of history that the API promises.
const HistoryDaysMin = 366
