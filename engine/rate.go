package engine

import (
	"cmp"
	"time"
)

// Rate is one published rate, complete as the contract wants it (interface §2.1). It is immutable once published.
type Rate struct {
	ID              string // institutionId:currency:channel:kind, stable across refreshes (P10)
	InstitutionID   string
	InstitutionName string
	InstitutionType InstitutionType
	Website         string
	Currency        string
	Buy, Sell       Decimal // compra, venta: what the institution pays, what it asks (S1)
	Channel         Channel
	Kind            Kind
	EffectiveDate   Date      // zero = null
	PublishedAt     time.Time // zero = null
	UpstreamSource  string    // "" = null
	SourceID        string
	SourceName      string
	SourceURL       string
	CollectedAt     time.Time // when the value or its date last changed (T4)
	LastCheckedAt   time.Time // when the source last confirmed it (T4)
	ExpiresAt       time.Time
	Priority        int64
	Manual          bool
	Stale           bool // now ≥ ExpiresAt when the answer was cut (T1)
	DatePrecision   DatePrecision
}

// Side is the side that an operation applies: the caller who buys pays venta, who sells gets compra (S1).
func (r *Rate) Side(operation Operation) Decimal {
	if operation == Buy {
		return r.Sell
	}
	return r.Buy
}

// compareRanked is the order of best and convert: best for the caller first (S2, S3).
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

// QuoteKey names one quote of a currency: several sources may offer it, one of them is published (S11).
type QuoteKey struct {
	Institution string
	Channel     Channel
	Kind        Kind
}

// ID is the rate id of the quote in a currency (P10).
func (k QuoteKey) ID(currency string) string {
	return k.Institution + ":" + currency + ":" + string(k.Channel) + ":" + string(k.Kind)
}

// Compare orders quotes of one currency as lists do (P4).
func (k QuoteKey) Compare(other QuoteKey) int {
	if order := cmp.Compare(k.Institution, other.Institution); order != 0 {
		return order
	}
	return cmp.Or(cmp.Compare(k.Channel, other.Channel), cmp.Compare(k.Kind, other.Kind))
}

// HistoryEntry is one row of daily history (interface §2.5): the last value of one quote on one Dominican day (T5).
type HistoryEntry struct {
	Date          Date
	InstitutionID string
	Currency      string
	Channel       Channel
	Kind          Kind
	Buy, Sell     Decimal
	SourceID      string
	DatePrecision DatePrecision
	ObservedAt    time.Time // when the source said it; not published
	Precedence    int64     // precedence of the source that gave it (Source.Rank); not published
}
