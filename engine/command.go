package engine

import "time"

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
