package engine

import (
	"errors"
	"fmt"
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
