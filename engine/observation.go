package engine

import "time"

// Limits of observations.
const (
	InstitutionIDMax  = 80  // characters
	UpstreamSourceMax = 200 // characters
	sideTextMax       = 64  // bytes of a text kept in quarantine, because a side may be a whole page by mistake
)

// Observation is a quote as a source gave it, before it is checked. A side is the source's text, or "" if missing.
type Observation struct {
	InstitutionID string
	Currency      string
	Channel       Channel // "" = Unspecified
	Kind          Kind    // "" = Commercial
	Buy, Sell     string
	EffectiveDate Date      // zero = not stated
	PublishedAt   time.Time // zero = not stated
	ExpiresAt     time.Time // zero = not stated; then it is ObservedAt plus the source's lifetime
	Document      string    // digest of the document, "" = unknown; stored only in quarantine
}

// Refresh has all observations of one source at one time. They are checked together.
type Refresh struct {
	SourceID     string
	ObservedAt   time.Time
	Observations []Observation
	// Slot is the scheduled time of the refresh, or zero if it was not scheduled. A source is accepted once for each
	// slot, and not for slots before the last accepted one. Therefore a slot that a crash interrupted can be repeated.
	Slot       time.Time
	By         string // the operator, or "" for a collected refresh
	currencies int    // number of currencies in the whole refresh; 0 = one
	// Complete reports whether the refresh has all quotes of the source. Only then is the ThinRefresh rule applied. A
	// file of observations and a manual rate are not complete.
	Complete bool
}

// Key returns the key of the observed quote, with the defaults of channel and kind.
func (o *Observation) Key() QuoteKey {
	key := QuoteKey{o.InstitutionID, o.Channel, o.Kind}
	if key.Channel == "" {
		key.Channel = Unspecified
	}
	if key.Kind == "" {
		key.Kind = Commercial
	}
	return key
}

// Reason says why an observation was refused.
type Reason string

// The values of Reason. Observations that are refused for one of the first three are not stored. All others are kept in
// quarantine, from which an operator can release them.
const (
	UnknownInstitution Reason = "unknown_institution"
	UnknownCurrency    Reason = "unknown_currency"
	BadField           Reason = "bad_field"

	Unparsable   Reason = "unparsable"   // a side is not a decimal
	Negative     Reason = "negative"     // a side is below zero
	Zero         Reason = "zero"         // a side is 0, as on a page that was read before its script ran
	NoSide       Reason = "no_side"      // neither side is given
	Crossed      Reason = "crossed"      // buy is above sell; sides are never swapped
	OutOfBand    Reason = "out_of_band"  // outside the plausible range
	Jump         Reason = "jump"         // too far from the source's last good value
	OffMarket    Reason = "off_market"   // too far from the median of the fresh quotes
	SameSides    Reason = "same_sides"   // the sides are equal: one of them was read twice
	Disagreement Reason = "disagreement" // one refresh has two values for one quote
	Outdated     Reason = "outdated"     // effective before the source's last quote, as in yesterday's file
	FutureDate   Reason = "future_date"  // effective more than 7 days ahead, or observed in the future
	ThinRefresh  Reason = "thin_refresh" // the refresh lacks more than half of the source's quotes
)

// Refusal is one observation that was refused.
type Refusal struct {
	Refresh, Index int // indexes of the refresh, and of the observation in it
	Observation    Observation
	Reason         Reason
	Detail         string // a sentence that explains Reason
	QuarantineID   uint64 // 0 if the observation is not in quarantine
}

// Receipt is the durable outcome of an ingestion.
type Receipt struct {
	Accepted int // observations that became, or confirmed, a source quote or a history row
	Changed  int // accepted observations that changed a value or its date
	Repeated int // observations of a slot that was already answered; they change nothing
	Refused  []Refusal
}
