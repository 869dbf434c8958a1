package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Values of Error.Code that clients usually handle. The API specification lists all values. CodeNone means that the
// body is not an API error; it may come from a proxy.
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
	CodeMailUnavailable     = "mail_unavailable"
	CodeOverloaded          = "overloaded"
)

// Error is an error response. Callers get it with errors.As.
type Error struct {
	Status     int
	Code       string        // CodeNone if the body is not an API error
	Message    string        // for people
	RequestID  string        // identifies the request in the node's log
	Details    []Detail      // problems of the parameters
	RetryAfter time.Duration // 0 = not stated
}

// Detail is one problem of a request. Path is the name of a parameter. For a repeated parameter, an index follows.
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

// errorBody is the body of an API error.
type errorBody struct {
	Error struct {
		Code      string   `json:"code"`
		Message   string   `json:"message"`
		RequestID string   `json:"requestId,omitempty"`
		Details   []Detail `json:"details,omitempty"`
	} `json:"error"`
}

// proxyBodyMax is the maximum number of bytes of a body in Error.Message, if the body is not an API error.
const proxyBodyMax = 200

// readError converts an error response to an Error.
func readError(response *http.Response, body []byte) *Error {
	e := &Error{Status: response.StatusCode, RequestID: response.Header.Get("X-Request-Id"), RetryAfter: parseSeconds(response.Header.Get("Retry-After"))}
	var parsed errorBody
	if json.Unmarshal(body, &parsed) == nil && parsed.Error.Code != "" {
		e.Code, e.Message, e.Details = parsed.Error.Code, parsed.Error.Message, parsed.Error.Details
		if e.RequestID == "" {
			e.RequestID = parsed.Error.RequestID
		}
		return e
	}
	e.Message = http.StatusText(response.StatusCode)
	if location, err := response.Location(); err == nil && response.StatusCode/100 == 3 {
		e.Message = fmt.Sprintf("redirected to %s://%s; set BaseURL to that if it is the node", location.Scheme, location.Host)
	} else if text := strings.TrimSpace(string(body[:min(len(body), proxyBodyMax)])); text != "" {
		e.Message = fmt.Sprintf("not an API error, possibly from a proxy: %q", text)
	}
	return e
}

const secondsMax = 100_000 // more than a day, and far from an overflow of time.Duration

// parseSeconds parses a whole number of seconds. It returns 0 for any other text.
func parseSeconds(text string) time.Duration {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0
	}
	return time.Duration(min(n, secondsMax)) * time.Second
}
