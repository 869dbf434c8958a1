package engine

import (
	"sync/atomic"
	"time"
)

// Limits of paging and of ranges (interface §8).
const (
	LimitDefault        = 100
	LimitMax            = 200
	CursorMax           = 100_000
	HistoryRangeDaysMax = 365
	HistoryDefaultDays  = 7
	NoNextCursor        = -1 // Page.Next when there is no further page
)

// Filter narrows rates and history; an empty field matches everything.
type Filter struct {
	Currency    string
	Institution string
	Channel     Channel
	Kind        Kind
}

// PageRequest is the part of a list that is asked for: at most Limit items after the first Cursor ones (P1).
type PageRequest struct {
	Limit, Cursor int
}

// RatesQuery asks for published rates.
type RatesQuery struct {
	Filter
	PageRequest
}

// RankingQuery asks for the current rates of one currency that have the side the operation needs, best first (S2–S7).
type RankingQuery struct {
	Filter
	PageRequest
	Operation Operation
	// ForConvert says that the ranking is for convert, where reference rates are compared when asked for (S6); a best
	// ranking of them is empty (S5). An empty Kind means commercial in both.
	ForConvert bool
}

// HistoryQuery asks for daily rows from RefreshIndex to To, both included.
type HistoryQuery struct {
	Filter
	PageRequest
	From, To Date
}

// InstitutionsQuery asks for active institutions; Currency keeps those that publish a rate in it (P8).
type InstitutionsQuery struct {
	Currency string
	PageRequest
}

// Page is one immutable part of a list.
type Page[T any] struct {
	Items      []T
	Total      int // matches before paging, from the same snapshot (P2)
	NextCursor int // cursor of the next page, NoNext when there is none (P1)
	// ChangesAt is the first instant at which the same question may be answered differently without a new fact: an
	// expiry. Zero when there is none.
	ChangesAt time.Time
	// Rendered is where the front end keeps what it made of the page, its encoded answer. Always one concrete type.
	Rendered atomic.Value
}

// CurrencyItem is a currency with its counts (interface §2.3, P6).
type CurrencyItem struct {
	Currency
	QuoteCount, CurrentQuoteCount int
}

// InstitutionItem is an institution in a list (interface §2.4, P6, P8).
type InstitutionItem struct {
	*Institution
	Currencies        []string // sorted codes of its published rates
	CurrentQuoteCount int
}

// InstitutionDetail is an active institution with all its published rates, in list order. ChangesAt and Rendered are as in Page.
type InstitutionDetail struct {
	*Institution
	Rates     []*Rate
	ChangesAt time.Time
	Rendered  atomic.Value
}

// ResolveHistoryRange completes a history range from today's date (T6): neither end: the last seven days; only from: to today;
// only to: the seven days that end with it.
func ResolveHistoryRange(from, to, today Date) (Date, Date) {
	switch {
	case from.IsZero() && to.IsZero():
		to = today
		from = to.AddDays(1 - HistoryDefaultDays)
	case to.IsZero():
		to = today
	case from.IsZero():
		from = to.AddDays(1 - HistoryDefaultDays)
	}
	return from, to
}
