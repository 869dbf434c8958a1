package engine

import (
	"sync/atomic"
	"time"
)

// Limits of pages and of date ranges.
const (
	LimitDefault        = 100
	LimitMax            = 200
	CursorMax           = 100_000
	HistoryRangeDaysMax = 365
	HistoryDefaultDays  = 7
	NoNextCursor        = -1 // Page.NextCursor of the last page
)

// Filter narrows rates and history. An empty field matches everything.
type Filter struct {
	Currency    string
	Institution string
	Channel     Channel
	Kind        Kind
}

// PageRequest asks for at most Limit items, after the first Cursor items.
type PageRequest struct {
	Limit, Cursor int
}

// RatesQuery asks for published rates.
type RatesQuery struct {
	Filter
	PageRequest
}

// RankingQuery asks for the current rates of one currency, best first for the operation. It omits rates without the
// side for the operation.
type RankingQuery struct {
	Filter
	PageRequest
	Operation Operation
	// ForConvert allows a ranking of reference rates (Kind Reference), which is otherwise empty. An empty Kind means
	// Commercial.
	ForConvert bool
	// At is the present time in Unix nanoseconds, if the caller has just read the clock. Zero means now.
	At int64
}

// HistoryQuery asks for daily rows from From to To, inclusive.
type HistoryQuery struct {
	Filter
	PageRequest
	From, To Date
}

// InstitutionsQuery asks for active institutions; with Currency set, only for those with a published rate in it.
type InstitutionsQuery struct {
	Currency string
	PageRequest
}

// Page is one immutable part of a list.
type Page[T any] struct {
	Items      []T
	Total      int // number of matches on all pages
	NextCursor int // NoNextCursor on the last page
	// ChangesAt is the time of the next expiry of a rate, or zero. From then on the result can change without a new
	// rate.
	ChangesAt time.Time
	// Rendered caches the encoded page for package httpapi. All its values must have the same type.
	Rendered atomic.Value
}

// AllItems returns the items of a list's first pagesMax pages. getPage gets one page.
func AllItems[T any](pagesMax int, getPage func(PageRequest) (*Page[T], error)) ([]T, error) {
	request := PageRequest{Limit: LimitMax}
	var items []T
	for range pagesMax {
		page, err := getPage(request)
		if err != nil {
			return nil, err
		}
		items = append(items, page.Items...)
		if page.NextCursor == NoNextCursor {
			break
		}
		request.Cursor = page.NextCursor
	}
	return items, nil
}

// CurrencyItem is a currency with its counts.
type CurrencyItem struct {
	Currency
	QuoteCount, CurrentQuoteCount int
}

// InstitutionItem is an institution in a list.
type InstitutionItem struct {
	*Institution
	Currencies        []string // sorted codes of its published rates
	CurrentQuoteCount int
}

// InstitutionDetail is an active institution with all its published rates, in list order. ChangesAt and Rendered are as
// in Page.
type InstitutionDetail struct {
	*Institution
	Rates     []*Rate
	ChangesAt time.Time
	Rendered  atomic.Value
}

// ResolveHistoryRange replaces zero dates by defaults: today for to, and for from the date that makes the range
// HistoryDefaultDays long.
func ResolveHistoryRange(from, to, today Date) (Date, Date) {
	if to.IsZero() {
		to = today
	}
	if from.IsZero() {
		from = to.AddDays(1 - HistoryDefaultDays)
	}
	return from, to
}

func (f *Filter) matchesKey(key QuoteKey) bool {
	return (f.Institution == "" || f.Institution == key.Institution) &&
		(f.Channel == "" || f.Channel == key.Channel) &&
		(f.Kind == "" || f.Kind == key.Kind)
}

// pager counts the matches of a query and keeps those of the requested page.
type pager[T any] struct {
	request PageRequest
	total   int
	items   []T
}

func (p *pager[T]) add(item T) {
	if p.total >= p.request.Cursor && len(p.items) < p.request.Limit {
		p.items = append(p.items, item)
	}
	p.total++
}

func (p *pager[T]) page(changesAt time.Time) *Page[T] {
	next := p.request.Cursor + len(p.items)
	if next >= p.total || next > CursorMax || len(p.items) == 0 {
		next = NoNextCursor
	}
	return &Page[T]{Items: p.items, Total: p.total, NextCursor: next, ChangesAt: changesAt}
}
