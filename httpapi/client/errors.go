package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Codes of Error that a caller acts upon; the contract's list has more (E1). CodeNone is an error that is not of the contract: a proxy's.
const (
	CodeNone                = ""
	CodeInvalidParameters   = "invalid_parameters"
	CodeMissingKey          = "missing_key"
	CodeInvalidKey          = "invalid_key"
	CodeRevokedKey          = "revoked_key"
	CodeAccountSuspended    = "account_suspended"
	CodeInvalidCode         = "invalid_code"
	CodeInvalidSession      = "invalid_session"
	CodeInstitutionNotFound = "institution_not_found"
	CodeKeyLimitReached     = "key_limit_reached"
	CodeRateLimited         = "rate_limited"
	CodeQuotaExceeded       = "quota_exceeded"
	CodeRequestedTooSoon    = "code_requested_too_soon"
	CodeDataUnavailable     = "data_unavailable"
	CodeOverloaded          = "overloaded"
)

// Error is an answer that is a refusal. Get it with errors.As.
type Error struct {
	Status     int
	Code       string        // CodeNone when the body is not the contract's
	Message    string        // for people
	RequestID  string        // to be kept for reports
	Details    []Detail      // of invalid parameters
	RetryAfter time.Duration // 0 = not said
}

// Detail is one problem of a request. Path is the parameter's name, and the number of its repetition.
type Detail struct {
	Path    []any  `json:"path"`
	Message string `json:"message"`
}

// Error tells all that a log needs.
func (e *Error) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "the node answers %d", e.Status)
	if e.Code != CodeNone {
		fmt.Fprintf(&text, " %s", e.Code)
	}
	fmt.Fprintf(&text, ": %s", e.Message)
	for _, detail := range e.Details {
		fmt.Fprintf(&text, "; %s", detail.Message)
	}
	if e.RetryAfter > 0 {
		fmt.Fprintf(&text, "; try again in %s", e.RetryAfter)
	}
	if e.RequestID != "" {
		fmt.Fprintf(&text, " (request %s)", e.RequestID)
	}
	return text.String()
}

// errorBody is section 7 of the contract.
type errorBody struct {
	Error struct {
		Code      string   `json:"code"`
		Message   string   `json:"message"`
		RequestID string   `json:"requestId,omitempty"`
		Details   []Detail `json:"details,omitempty"`
	} `json:"error"`
}

// proxyBodyMax is how much is told of a body that is not the contract's.
const proxyBodyMax = 200

// readError is the refusal that an answer is.
func readError(response *http.Response, body []byte) *Error {
	e := &Error{Status: response.StatusCode, RequestID: response.Header.Get("X-Request-Id"), RetryAfter: parseSeconds(response.Header.Get("Retry-After"))}
	var read errorBody
	if json.Unmarshal(body, &read) == nil && read.Error.Code != "" {
		e.Code, e.Message, e.Details = read.Error.Code, read.Error.Message, read.Error.Details
		if e.RequestID == "" {
			e.RequestID = read.Error.RequestID
		}
		return e
	}
	e.Message = http.StatusText(response.StatusCode)
	if at, err := url.Parse(response.Header.Get("Location")); err == nil && response.StatusCode/100 == 3 {
		e.Message = fmt.Sprintf("it sends elsewhere, to %s://%s; give that as BaseURL if it is the node", at.Scheme, at.Host)
	} else if text := strings.TrimSpace(string(body[:min(len(body), proxyBodyMax)])); text != "" {
		e.Message = fmt.Sprintf("not a node's error, a proxy's perhaps: %q", text)
	}
	return e
}

// redact is the error with a secret struck out: somebody between may answer with what he was sent.
func (e *Error) redact(secret string) *Error {
	if secret == "" {
		return e
	}
	for _, text := range []*string{&e.Code, &e.Message, &e.RequestID} {
		*text = strings.ReplaceAll(*text, secret, redacted)
	}
	for i := range e.Details {
		e.Details[i].Message = strings.ReplaceAll(e.Details[i].Message, secret, redacted)
	}
	return e
}
