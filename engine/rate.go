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
