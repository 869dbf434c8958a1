package engine

import "time"

// Limits of what comes in.
const (
	InstitutionIDMax  = 80  // characters (interface §2.1)
	UpstreamSourceMax = 200 // characters
	sideTextMax       = 64  // bytes of a side's text, or of a document's name, that are kept with a refusal; longer ones are cut
)

// Observation is what one source said of one quote (I1). Sides are the source's own text: empty when it gave none.
type Observation struct {
	InstitutionID string
	Currency      string
	Channel       Channel // "" = unspecified
	Kind          Kind    // "" = commercial
	Buy, Sell     string
	EffectiveDate Date      // zero = not stated
	PublishedAt   time.Time // zero = not stated
	ExpiresAt     time.Time // zero = not stated: the source's own span counts from ObservedAt (T3)
	Document      string    // digest of the document that it was read from, "" = not known; kept with what is held back
}

// Refresh is everything that one source said at one moment: the unit in which sources are believed or doubted.
type Refresh struct {
	SourceID     string
	ObservedAt   time.Time
	Observations []Observation
	// Slot is the moment of the schedule that the refresh answers, zero when it answers none. A source is heard once for a slot
	// and never again for an earlier one, so that a slot that a crash cut short can be done again.
	Slot       time.Time
	By         string // who typed it, for the log; "" = nobody, it was collected
	currencies int    // in how many the refresh was split, 0 = this one
	// Complete says that this is the source's whole answer, so that what is missing from it is a loss (ThinRefresh). A file
	// of observations or a single manual rate is not.
	Complete bool
}

// Reason says why an observation was refused or held back.
type Reason string

// The closed list of reasons. The first group never reaches a book (nothing is known to file it under), the second is
// held in quarantine with the observation, where an operator may release or reject it (I3).
const (
	UnknownInstitution Reason = "unknown_institution"
	UnknownCurrency    Reason = "unknown_currency"
	BadField           Reason = "bad_field"

	Unparsable   Reason = "unparsable"   // a side that is no decimal
	Negative     Reason = "negative"     // a side below zero
	Zero         Reason = "zero"         // a side of 0: a page that was read before its script filled it
	NoSide       Reason = "no_side"      // neither side
	Crossed      Reason = "crossed"      // buy above sell: never swapped
	OutOfBand    Reason = "out_of_band"  // outside the currency's band
	Jump         Reason = "jump"         // too far from the source's own last good value
	OffMarket    Reason = "off_market"   // too far from the median of the fresh quotes
	SameSides    Reason = "same_sides"   // a commercial quote whose sides are equal: one of them was read twice
	Disagreement Reason = "disagreement" // one source, one moment, two answers
	Outdated     Reason = "outdated"     // dated before what the source has said already: yesterday's file
	FutureDate   Reason = "future_date"  // effective more than 7 days ahead, or observed in the future
	ThinRefresh  Reason = "thin_refresh" // the refresh would lose more than half of the source's quotes
)

// Refusal is one observation that was not taken in: which, why, and what exactly was wrong.
type Refusal struct {
	Refresh, Index int // positions in what was handed over: which refresh, which of its observations
	Observation    Observation
	Reason         Reason
	Detail         string // a sentence with the values that decided
	QuarantineID   uint64 // number in the book's quarantine; 0 when it was not kept there
}

// Receipt is the durable outcome of an intake.
type Receipt struct {
	Accepted int // observations that became, or confirmed, an offer or a row of history
	Changed  int // of these, the ones that changed a value or its date
	Repeated int // observations of a slot that was taken in before: they change nothing
	Refused  []Refusal
}
