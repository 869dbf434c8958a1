package engine

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Service is the data operations of the API /v1: currencies, institutions, rates and history. They read memory only.
// Pages are shared, so callers must not change them. Every error is an *Error. All methods are safe for concurrent use.
type Service interface {
	Currencies() (*Page[CurrencyItem], error)
	Institutions(InstitutionsQuery) (*Page[InstitutionItem], error)
	// For an unknown or inactive institution the error of Institution has CodeInstitutionNotFound.
	Institution(id string) (*InstitutionDetail, error)
	Rates(RatesQuery) (*Page[*Rate], error)
	Ranking(RankingQuery) (*Page[*Rate], error)
	History(HistoryQuery) (*Page[HistoryEntry], error)
}

// Ingester accepts observations. A Refresh contains all observations of one source at one time. Refreshes are checked
// in the given order. When Observe returns without error, all changes counted in the receipt are on disk and published.
type Ingester interface {
	Observe([]Refresh) (Receipt, error)
}

// Code is a value of error.code in the API specification.
type Code string

// Codes of the data operations.
const (
	CodeInvalidParameters   Code = "invalid_parameters"
	CodeMalformedRequest    Code = "malformed_request"
	CodeRequestTimeout      Code = "request_timeout"
	CodeHeadersTooLarge     Code = "headers_too_large"
	CodeNotFound            Code = "not_found"
	CodeInstitutionNotFound Code = "institution_not_found"
	CodeMethodNotAllowed    Code = "method_not_allowed"
	CodePayloadTooLarge     Code = "payload_too_large"
	CodeNotImplemented      Code = "not_implemented"
	CodeInternalError       Code = "internal_error"
	CodeDataUnavailable     Code = "data_unavailable"
	CodeMailUnavailable     Code = "mail_unavailable"
	CodeOverloaded          Code = "overloaded"
	CodeReadOnly            Code = "read_only"
	CodeNoMajority          Code = "no_majority"
)

// Codes of keys, accounts and limits.
const (
	CodeMissingKey           Code = "missing_key"
	CodeInvalidKey           Code = "invalid_key"
	CodeRevokedKey           Code = "revoked_key"
	CodeAccountSuspended     Code = "account_suspended"
	CodeInvalidCode          Code = "invalid_code"
	CodeInvalidSession       Code = "invalid_session"
	CodeKeyLimitReached      Code = "key_limit_reached"
	CodeUnsupportedMediaType Code = "unsupported_media_type"
	CodeRateLimited          Code = "rate_limited"
	CodeQuotaExceeded        Code = "quota_exceeded"
	CodeRequestedTooSoon     Code = "code_requested_too_soon"
)

// Error is an error with a code of the API specification.
type Error struct {
	Code       Code
	Message    string        // for the client, without internal details
	RetryAfter time.Duration // time after which the client may retry; 0 = unknown
	Cause      error         // for the log only
}

// ErrOutcomeUnknown is the error of a change in progress on a node that loses its cluster meanwhile.
var ErrOutcomeUnknown = &Error{
	Code: CodeInternalError, Message: "the change may or may not have been kept; check it when the nodes of the cluster reach each other again",
}

// Error returns the code, the message and the cause.
func (e *Error) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Message, e.Cause)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Message)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// CodeOf returns the code of an Error, or "" for another error.
func CodeOf(err error) Code {
	var coded *Error
	if errors.As(err, &coded) {
		return coded.Code
	}
	return ""
}

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
	// Rendered caches the encoded page for package httpapi. All its values must have the same type. So different queries
	// must have different pages, even if their items are equal.
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

// InstitutionDetail is an active institution with all its published rates, in list order, as one page.
type InstitutionDetail struct {
	*Institution
	Page[*Rate]
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
