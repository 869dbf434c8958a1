package engine

import (
	"cmp"
	"time"
)

// Rate is one published rate, with all fields of the API specification. It is immutable.
type Rate struct {
	ID              string // QuoteKey.ID, the same after every refresh
	InstitutionID   string
	InstitutionName string
	InstitutionType InstitutionType
	Website         string
	Currency        string
	Buy, Sell       Decimal // the prices at which the institution buys (compra) and sells (venta)
	Channel         Channel
	Kind            Kind
	EffectiveDate   Date      // zero = null
	PublishedAt     time.Time // zero = null
	UpstreamSource  string    // "" = null
	SourceID        string
	SourceName      string
	SourceURL       string
	CollectedAt     time.Time // time of the last change of the value or its date
	LastCheckedAt   time.Time // time of the newest observation of the value
	ExpiresAt       time.Time
	Priority        int64
	Manual          bool
	Stale           bool // true if the rate had expired at the time of the view
	DatePrecision   DatePrecision
}

// Side returns the side for the caller's operation. To buy, the caller pays the institution's sell side.
func (r *Rate) Side(operation Operation) Decimal {
	if operation == Buy {
		return r.Sell
	}
	return r.Buy
}

// compareRanked compares rates for a ranking. The best rate for the caller comes first.
func compareRanked(operation Operation, a, b *Rate) int {
	bySide := a.Side(operation).Compare(b.Side(operation))
	if operation == Sell {
		bySide = -bySide
	}
	if bySide != 0 {
		return bySide
	}
	return cmp.Or(
		cmp.Compare(a.Priority, b.Priority),
		b.CollectedAt.Compare(a.CollectedAt),
		cmp.Compare(a.InstitutionID, b.InstitutionID),
		cmp.Compare(a.Channel, b.Channel),
		cmp.Compare(a.ID, b.ID),
	)
}

// QuoteKey identifies a rate in one currency by institution, channel and kind. If several sources have a quote with the
// same key, only one of these quotes is published.
type QuoteKey struct {
	Institution string
	Channel     Channel
	Kind        Kind
}

// ID returns the id of the published rate: institution:currency:channel:kind.
func (k QuoteKey) ID(currency string) string {
	return k.Institution + ":" + currency + ":" + string(k.Channel) + ":" + string(k.Kind)
}

// Compare orders keys by institution, channel and kind.
func (k QuoteKey) Compare(other QuoteKey) int {
	if order := cmp.Compare(k.Institution, other.Institution); order != 0 {
		return order
	}
	return cmp.Or(cmp.Compare(k.Channel, other.Channel), cmp.Compare(k.Kind, other.Kind))
}

// HistoryEntry is one row of history: the newest value of one quote on one day in Santo Domingo, from the source with
// the highest precedence. Responses do not include ObservedAt and Precedence.
type HistoryEntry struct {
	Date          Date
	InstitutionID string
	Currency      string
	Channel       Channel
	Kind          Kind
	Buy, Sell     Decimal
	SourceID      string
	DatePrecision DatePrecision
	ObservedAt    time.Time
	Precedence    int64 // the smaller number takes precedence
}

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
