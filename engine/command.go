package engine

import "time"

// Command is something that somebody wants to be true of one currency's quotes.
type Command interface{ command() }

// Observe takes refreshes in, in the given order; all observations must be of the book's currency.
type Observe struct{ Refreshes []Refresh }

// Withdraw ends the offer that a source makes for a quote.
type Withdraw struct {
	Key      QuoteKey
	SourceID string
	By       string
}

// Release publishes a quarantined observation after all.
type Release struct {
	QuarantineID uint64
	By           string
}

// Reject drops a quarantined observation for good.
type Reject struct {
	QuarantineID uint64
	By           string
}

func (Observe) command()  {}
func (Withdraw) command() {}
func (Release) command()  {}
func (Reject) command()   {}

// Rules are the limits of the firewall between sources and what is served (I3).
type Rules struct {
	// JumpPermille is how far a side may move from the source's own last good value, in thousandths.
	JumpPermille int64
	// MedianPermille is how far a side may lie from the median of the fresh quotes, in thousandths.
	MedianPermille int64
	// MedianQuotesMin is how many fresh quotes a median needs to count.
	MedianQuotesMin int
	// LastGoodAgeMax is for how long a last good value is a measure for the next one.
	LastGoodAgeMax time.Duration
	// FutureDaysMax is how far in the future an effective date may lie.
	FutureDaysMax int
	// HistoryDays is how many local dates of commercial rows are kept, at least HistoryDaysMin. Reference rows are kept for good.
	HistoryDays int
}

// HistoryDaysMin is the depth of history that is promised (T9).
const HistoryDaysMin = 366
