package engine

import "time"

// Event is a fact about the quotes of one currency. Events are decided once (CurrencyState.Decide), written to the log, and applied
// (CurrencyState.Apply) when they are durable and again at every recovery: applying must not depend on clock, catalogue or rules.
type Event interface {
	// CurrencyCode names the book that the event belongs to.
	CurrencyCode() string
	event()
}

// Refreshed is what one refresh of one source changed in one currency: what is published and what is held back.
type Refreshed struct {
	Currency       string
	SourceID       string
	ObservedAt     time.Time
	Priority       int64
	Manual         bool
	UpstreamSource string
	Slot           time.Time // that the refresh answers; zero = none. It may be all that there is to say
	By             string    // who typed it, "" = nobody
	Currencies     int       // that were to hear of the slot
	Quotes         []AcceptedQuote
	Quarantined    []Quarantined
}

// AcceptedQuote is one accepted observation.
type AcceptedQuote struct {
	Key           QuoteKey
	Buy, Sell     Decimal
	EffectiveDate Date
	PublishedAt   time.Time
	ExpiresAt     time.Time
	Backfill      bool // older than what the source has said since: history only, the offer stays
}

// Quarantine is one observation in quarantine, with the reason and the sentence that explains it.
type Quarantined struct {
	ID          uint64 // consecutive within the book, from 1
	SourceID    string
	ObservedAt  time.Time
	Observation Observation
	Reason      Reason
	Detail      string
}

// Withdrawn ends an offer: an operator takes a manual rate back (S11).
type Withdrawn struct {
	Currency string
	SourceID string
	Key      QuoteKey
	At       time.Time
	By       string // who
}

// Released publishes a quarantined observation after all (I3).
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

// Rejected drops a quarantined observation for good.
type Rejected struct {
	Currency     string
	QuarantineID uint64
	At           time.Time
	By           string
}

// CurrencyCode names the book.
func (e *Refreshed) CurrencyCode() string { return e.Currency }

// CurrencyCode names the book.
func (e *Withdrawn) CurrencyCode() string { return e.Currency }

// CurrencyCode names the book.
func (e *Released) CurrencyCode() string { return e.Currency }

// CurrencyCode names the book.
func (e *Rejected) CurrencyCode() string { return e.Currency }

func (*Refreshed) event() {}
func (*Withdrawn) event() {}
func (*Released) event()  {}
func (*Rejected) event()  {}

// SourceQuote is what one source last said of one quote. The best of a quote's offers is published (S11).
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

// PendingConfirmation is a value that was held back as implausible; the source's next answer may confirm it.
type PendingConfirmation struct {
	Key        QuoteKey
	SourceID   string
	ObservedAt time.Time
	Buy, Sell  Decimal
}

// SavedCurrency is everything a book knows, for a snapshot. Slices are sorted (offers and suspects by key and source, history as P4,
// held by number, slots by source), so that equal books give equal states.
type SavedCurrency struct {
	Currency         string
	SourceQuotes     []SourceQuote
	Pending          []PendingConfirmation
	History          []HistoryEntry
	Quarantine       []Quarantined
	LastQuarantineID uint64
	Slots            []AnsweredSlot
}
