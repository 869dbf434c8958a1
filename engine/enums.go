package engine

import "time"

// QuoteCurrency is the currency in which every rate is quoted.
const QuoteCurrency = "DOP"

// Channel says where a rate applies. Order in lists is bytewise (P4).
type Channel string

// The closed list of channels (interface §2.1).
const (
	Unspecified Channel = "unspecified"
	Branch      Channel = "branch"
	Digital     Channel = "digital"
	Cash        Channel = "cash"
	Transfer    Channel = "transfer"
)

// Channels returns the closed list, in the order of the contract.
func Channels() []Channel {
	return []Channel{Unspecified, Branch, Digital, Cash, Transfer}
}

// ParseChannel accepts exactly the words of the closed list, byte for byte. The answer does not share the text's memory.
func ParseChannel(text string) (Channel, bool) { return parseEnum(text, Channels()) }

// parseEnum is the word of a list that a text is.
func parseEnum[W ~string](text string, words []W) (W, bool) {
	for _, word := range words {
		if text == string(word) {
			return word, true
		}
	}
	return "", false
}

// Kind tells what an institution offers from what the central bank publishes.
type Kind string

// The closed list of kinds.
const (
	Commercial Kind = "commercial"
	Reference  Kind = "reference"
)

// Kinds returns the closed list.
func Kinds() []Kind { return []Kind{Commercial, Reference} }

// ParseKind accepts exactly the words of the closed list, as ParseChannel does.
func ParseKind(text string) (Kind, bool) { return parseEnum(text, Kinds()) }

// Operation is what the caller does: Buy foreign currency or Sell it (S1).
type Operation string

// The two operations.
const (
	Buy  Operation = "buy"
	Sell Operation = "sell"
)

// Operations returns the closed list.
func Operations() []Operation { return []Operation{Buy, Sell} }

// ParseOperation accepts exactly "buy" and "sell", as ParseChannel does.
func ParseOperation(text string) (Operation, bool) { return parseEnum(text, Operations()) }

// DatePrecision says how exactly a source dates its rate.
type DatePrecision string

// The closed list of precisions: an instant, a day, or no date at all.
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
