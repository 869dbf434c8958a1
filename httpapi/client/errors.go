package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Values of Error.Code that programs act on; the contract has more. CodeNone means that the body was not
// written by a node, but by a proxy for example.
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

// Error is a refusal. Get it with errors.As.
type Error struct {
	Status     int
	Code       string        // CodeNone if the body is not of the contract
	Message    string        // for people
	RequestID  string        // identifies the request in the node's log
	Details    []Detail      // of invalid parameters
	RetryAfter time.Duration // 0 = not stated
}

// Detail is one problem of a request. Path is the name of a parameter, and its index if it is repeated.
type Detail struct {
	Path    []any  `json:"path"`
	Message string `json:"message"`
}

// Error implements error.
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

// errorBody is the body of an error.
type errorBody struct {
	Error struct {
		Code      string   `json:"code"`
		Message   string   `json:"message"`
		RequestID string   `json:"requestId,omitempty"`
		Details   []Detail `json:"details,omitempty"`
	} `json:"error"`
}

// proxyBodyMax bounds the quote of a body that is not of the contract.
const proxyBodyMax = 200

// readError makes an Error of an answer.
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

// redact removes a secret from the error: a proxy may echo the request.
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
