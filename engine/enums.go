package engine

import "time"

// QuoteCurrency is the currency in which every rate is quoted.
const QuoteCurrency = "DOP"

// Channel is the place where a rate applies.
type Channel string

// The closed list of channels.
const (
	Unspecified Channel = "unspecified"
	Branch      Channel = "branch"
	Digital     Channel = "digital"
	Cash        Channel = "cash"
	Transfer    Channel = "transfer"
)

// Channels returns all channels, in the order of the API specification.
func Channels() []Channel {
	return []Channel{Unspecified, Branch, Digital, Cash, Transfer}
}

// ParseChannel returns the channel that equals text, or false. The result does not share memory with text.
func ParseChannel(text string) (Channel, bool) { return parseEnum(text, Channels()) }

func parseEnum[E ~string](text string, values []E) (E, bool) {
	for _, value := range values {
		if text == string(value) {
			return value, true
		}
	}
	return "", false
}

// Kind is commercial (an institution trades at the rate) or reference (published by the central bank).
type Kind string

// The closed list of kinds.
const (
	Commercial Kind = "commercial"
	Reference  Kind = "reference"
)

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{Commercial, Reference} }

// ParseKind returns the kind that equals text, like ParseChannel.
func ParseKind(text string) (Kind, bool) { return parseEnum(text, Kinds()) }

// Operation is the caller's operation: to buy or to sell foreign currency.
type Operation string

// The closed list of operations.
const (
	Buy  Operation = "buy"
	Sell Operation = "sell"
)

// Operations returns all operations.
func Operations() []Operation { return []Operation{Buy, Sell} }

// ParseOperation returns the operation that equals text, like ParseChannel.
func ParseOperation(text string) (Operation, bool) { return parseEnum(text, Operations()) }

// DatePrecision tells how a source dates its rate: by a time, by a day or not at all.
type DatePrecision string

// The closed list of precisions: an instant, a day, or no date.
const (
	PrecisionDatetime DatePrecision = "datetime"
	PrecisionDay      DatePrecision = "day"
	PrecisionUnknown  DatePrecision = "unknown"
)

func precisionOf(effective Date, published time.Time) DatePrecision {
	switch {
	case !published.IsZero():
		return PrecisionDatetime
	case !effective.IsZero():
		return PrecisionDay
	}
	return PrecisionUnknown
}
