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

// Rules are the limits that observations are checked against.
type Rules struct {
	// JumpPermille is how far a side may move from the source's last good value, in thousandths.
	JumpPermille int64
	// MedianPermille is how far a side may be from the median of the fresh quotes, in thousandths.
	MedianPermille int64
	// MedianQuotesMin is how many fresh quotes a median needs.
	MedianQuotesMin int
	// LastGoodAgeMax is how long a last good value is compared with.
	LastGoodAgeMax time.Duration
	// FutureDaysMax is how far ahead an effective date may be.
	FutureDaysMax int
	// HistoryDays is how many days of commercial rows are kept, at least HistoryDaysMin. Reference rows are never
	// dropped.
	HistoryDays int
}

// HistoryDaysMin is how many days of history are promised.
const HistoryDaysMin = 366
