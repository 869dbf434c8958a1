package engine

import "time"

// Command asks for a change of one currency's state.
type Command interface{ command() }

// Observe adds the observations of refreshes, in the given order. All must be of the state's currency.
type Observe struct{ Refreshes []Refresh }

// Withdraw removes the quote of one source.
type Withdraw struct {
	Key      QuoteKey
	SourceID string
	By       string
}

// Release publishes an observation that is in quarantine.
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

// Rules has the limits for observations.
type Rules struct {
	// JumpPermille is the maximum change of a side from the source's last good value, in thousandths.
	JumpPermille int64
	// MedianPermille is the maximum distance of a side from the median of the fresh quotes, in thousandths.
	MedianPermille int64
	// MedianQuotesMin is the minimum number of fresh quotes for a median.
	MedianQuotesMin int
	// LastGoodAgeMax is the age after which a last good value is no longer compared.
	LastGoodAgeMax time.Duration
	// FutureDaysMax is the maximum number of days from an observation to its effective date.
	FutureDaysMax int
	// HistoryDays is the number of days of which commercial rows are kept, at least HistoryDaysMin. Reference rows are
	// never dropped.
	HistoryDays int
}

// HistoryDaysMin is the number of days of history that the API promises.
const HistoryDaysMin = 366
