package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Values of Error.Code that clients usually handle. The API specification lists all values. CodeNone means that the
// body is not an API error, for example because a proxy sent it.
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

// Detail is one problem of a request. Path is the name of a parameter, followed by an index if the parameter is
// repeated.
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

// proxyBodyMax is the number of bytes to which Error.Message shortens a body that is not an API error.
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

// ResponseInfo has the headers of a response.
type ResponseInfo struct {
	Status    int
	RequestID string // identifies the request in the node's log
	ETag      string
	MaxAge    time.Duration // how long the response may be cached
	Limits    *Limits       // nil if the node does not limit requests
	Sunset    time.Time     // when anonymous access ends; zero = no date is announced
}

// Limits is the tighter of the two quota windows of the caller, a day and a minute. Client.Usage returns both.
type Limits struct {
	Limit, Remaining int
	Reset            time.Time // when the window is reset
}

type infoKey struct{} // of the context value with the *ResponseInfo to fill in

// WithResponse returns a context for one request. info is filled in when a response arrives, even one with an
// error status. If there are several responses, after retries or for an iterator, info describes the last one.
func WithResponse(ctx context.Context, info *ResponseInfo) context.Context {
	return context.WithValue(ctx, infoKey{}, info)
}

// readResponseInfo reads the headers. The field for a missing header is zero, because a proxy may remove headers.
func readResponseInfo(response *http.Response) ResponseInfo {
	header := response.Header
	info := ResponseInfo{Status: response.StatusCode, RequestID: header.Get("X-Request-Id"), ETag: header.Get("ETag")}
	for directive := range strings.SplitSeq(header.Get("Cache-Control"), ",") {
		if text, ok := strings.CutPrefix(strings.TrimSpace(directive), "max-age="); ok {
			info.MaxAge = parseSeconds(text)
		}
	}
	info.Sunset, _ = http.ParseTime(header.Get("Sunset"))
	limit, limitErr := strconv.Atoi(header.Get("X-RateLimit-Limit"))
	remaining, remainingErr := strconv.Atoi(header.Get("X-RateLimit-Remaining"))
	reset, resetErr := strconv.ParseInt(header.Get("X-RateLimit-Reset"), 10, 64)
	if limitErr == nil && remainingErr == nil && resetErr == nil {
		info.Limits = &Limits{limit, remaining, time.Unix(reset, 0).UTC()}
	}
	return info
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
