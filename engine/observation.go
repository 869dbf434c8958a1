package engine

import "time"

// Limits of observations.
const (
	InstitutionIDMax  = 80  // characters
	UpstreamSourceMax = 200 // characters
	sideTextMax       = 64  // bytes of a text that are kept in quarantine; a side may be a whole page by mistake
)

// Observation is one quote that a source gave, not yet checked. Sides are the source's own text, "" when there is none.
type Observation struct {
	InstitutionID string
	Currency      string
	Channel       Channel // "" = Unspecified
	Kind          Kind    // "" = Commercial
	Buy, Sell     string
	EffectiveDate Date      // zero = not stated
	PublishedAt   time.Time // zero = not stated
	ExpiresAt     time.Time // zero = not stated: the source's lifetime after ObservedAt
	Document      string    // digest of the document, "" = not known; kept in quarantine
}

// Refresh is everything that one source gave at one time. It is checked as a whole.
type Refresh struct {
	SourceID     string
	ObservedAt   time.Time
	Observations []Observation
	// Slot is the slot of the schedule that the refresh answers, zero when it answers none. A source is accepted once
	// for each slot, and for none before the last, so that a slot which a crash interrupted can be done again.
	Slot       time.Time
	By         string // the operator, "" when it was collected
	currencies int    // that have observations in the whole refresh; 0 = only this one
	// Complete says that this is the whole answer of the source, which may then have lost quotes (ThinRefresh). A file
	// of observations and a manual rate are not complete.
	Complete bool
}

// Key returns the quote that is observed, with the defaults of channel and kind.
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

// The closed list of reasons. Observations that are refused for one of the first three belong to no currency's state;
// all others are kept in quarantine, from which an operator can release them.
const (
	UnknownInstitution Reason = "unknown_institution"
	UnknownCurrency    Reason = "unknown_currency"
	BadField           Reason = "bad_field"

	Unparsable   Reason = "unparsable"   // a side is not a decimal
	Negative     Reason = "negative"     // a side is below zero
	Zero         Reason = "zero"         // a side is 0, as on pages read before their script has run
	NoSide       Reason = "no_side"      // neither side is given
	Crossed      Reason = "crossed"      // buy is above sell; sides are never swapped
	OutOfBand    Reason = "out_of_band"  // outside the plausible range
	Jump         Reason = "jump"         // too far from the source's last good value
	OffMarket    Reason = "off_market"   // too far from the median of the fresh quotes
	SameSides    Reason = "same_sides"   // the sides are equal: one of them was read twice
	Disagreement Reason = "disagreement" // one refresh has two values for one quote
	Outdated     Reason = "outdated"     // dated before what the source gave already, as in yesterday's file
	FutureDate   Reason = "future_date"  // effective more than 7 days ahead, or observed in the future
	ThinRefresh  Reason = "thin_refresh" // the refresh lacks more than half of the source's quotes
)

// Refusal is one observation that was refused.
type Refusal struct {
	Refresh, Index int // of the refresh, and of the observation in it
	Observation    Observation
	Reason         Reason
	Detail         string // a sentence that explains Reason
	QuarantineID   uint64 // 0 when it was not kept
}

// Receipt is the durable outcome of an ingestion.
type Receipt struct {
	Accepted int // observations that are now, or confirm, a source quote or a history row
	Changed  int // those of the accepted that changed a value or its date
	Repeated int // observations of a slot that was answered before, which change nothing
	Refused  []Refusal
}
