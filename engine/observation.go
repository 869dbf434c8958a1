package engine

import "time"

// Limits of observations.
const (
	InstitutionIDMax = 80        // characters
	sideTextMax      = 64        // bytes of a text kept in quarantine; a side may be a whole page by mistake
	BaselineBytesMax = 256 << 10 // far more than the collector needs for its largest Baseline
)

// Observation is a rate as a source gave it, before it is checked. Buy and Sell are the source's texts, or "" if
// missing.
type Observation struct {
	InstitutionID string
	Currency      string
	Channel       Channel // "" = Unspecified
	Kind          Kind    // "" = Commercial
	Buy, Sell     string
	EffectiveDate Date      // zero = not stated
	PublishedAt   time.Time // zero = not stated
	ExpiresAt     time.Time // zero = not stated; ObservedAt plus Source.Lifetime applies
	Document      string    // digest of the source's document, "" = unknown; stored only in quarantine
}

// Refresh has all observations of one source at one time. The observations are checked together.
type Refresh struct {
	SourceID     string
	ObservedAt   time.Time
	Observations []Observation
	// Slot is the scheduled time of the refresh, or zero if it was not scheduled. A currency ignores a refresh unless
	// its slot is later than the last slot that the currency accepted from the source. A refresh that a crash
	// interrupted can therefore be repeated.
	Slot time.Time
	// Baseline is what the collector has learnt about the source up to Slot (package collectors/baseline). It is kept
	// with Slot, and has no effect on rates. A Baseline of more than BaselineBytesMax is not kept.
	Baseline   string
	By         string // name of the operator, or "" for a collected refresh
	currencies int    // number of currencies in the whole refresh; 0 = one
	// Complete reports whether the refresh should have all quotes of the source. Only a complete refresh can be refused
	// for the reason ThinRefresh. Files of observations and manual rates are not complete.
	Complete bool
}

// Key returns the key of the observed quote, with the default channel and kind if they are missing.
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

// The values of Reason. An observation that is refused for one of the first three is not stored. All others are kept in
// quarantine, from which an operator can release them.
const (
	UnknownInstitution Reason = "unknown_institution"
	UnknownCurrency    Reason = "unknown_currency"
	BadField           Reason = "bad_field"

	Unparsable   Reason = "unparsable"   // a side is not a decimal
	Negative     Reason = "negative"     // a side is below zero
	Zero         Reason = "zero"         // a side is 0, for example because a page was read before its script ran
	NoSide       Reason = "no_side"      // neither side is given
	Crossed      Reason = "crossed"      // buy is above sell; sides are never swapped
	OutOfBand    Reason = "out_of_band"  // outside the plausible range, or too far from the reference rate
	Jump         Reason = "jump"         // too far from the value last accepted from the source (Rules.JumpPermille)
	OffMarket    Reason = "off_market"   // too far from the median of the other institutions
	Contradicted Reason = "contradicted" // was published, until the market or the reference rate contradicted it
	SameSides    Reason = "same_sides"   // buy and sell are equal; probably one of them was read twice
	Disagreement Reason = "disagreement" // the refresh has two values for the quote
	Outdated     Reason = "outdated"     // effective before the source's newest quote, for example in yesterday's file
	FutureDate   Reason = "future_date"  // effective more than 7 days ahead, or observed in the future
	ThinRefresh  Reason = "thin_refresh" // the refresh lacks more than half of the source's current quotes
)

// Refusal is one observation that was refused.
type Refusal struct {
	Refresh, Index int // indexes of the refresh, and of the observation in it
	Observation    Observation
	Reason         Reason
	Detail         string // a sentence that explains Reason
	QuarantineID   uint64 // 0 if the observation is not in quarantine
}

// Receipt counts the outcomes of an ingestion.
type Receipt struct {
	Accepted int // observations that became or confirmed a current value or a history row
	Changed  int // accepted observations that changed a value or its date
	Repeated int // observations of a scheduled time that was accepted before; they were ignored
	Refused  []Refusal
	Notices  []Notice
}

// Notice tells the operator of a decision about a published rate that should be looked at.
type Notice struct {
	RateID, SourceID string
	Text             string
}

func (n Notice) String() string { return "rate " + n.RateID + " of " + n.SourceID + " " + n.Text }
