package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Defaults of Config.
const (
	RetriesDefault   = 3
	WaitMaxDefault   = 65 * time.Second // longer than the minute window of the quota
	TimeoutDefault   = 30 * time.Second // timeout of each attempt with the default HTTPClient
	UserAgentDefault = "tasard-client"
)

// NoRetries as Config.Retries turns retries off.
const NoRetries = -1

const bodyBytesMax = 8 << 20 // of a response; the largest page has about 150 KB

// Config configures a Client. Only BaseURL is required.
type Config struct {
	// BaseURL is the URL of the node (the server of the API), such as https://rates.example, with or without /v1.
	// Danger: plain http exposes the key to the network.
	BaseURL string
	// Key is the API key. "" = anonymous.
	Key string
	// HTTPClient sends the requests. nil = a client with TimeoutDefault. Redirects are never followed.
	HTTPClient *http.Client
	// UserAgent is the User-Agent header. "" = UserAgentDefault.
	UserAgent string
	// Retries is the maximum number of retries of a request. 0 = RetriesDefault; see NoRetries.
	Retries int
	// WaitMax is the maximum wait before a retry. If Retry-After is longer, the error is returned at once. 0 =
	// WaitMaxDefault.
	WaitMax time.Duration
	// Wait waits before a retry. nil = wait in real time. A test can advance a clock instead.
	Wait func(ctx context.Context, wait time.Duration) error
}

// Client sends requests to a node. It is safe for concurrent use.
type Client struct {
	config Config
	base   string // without a slash at the end
	http   *http.Client
}

// New validates a Config. It opens no connection.
func New(config Config) (*Client, error) {
	base, err := url.Parse(config.BaseURL)
	if err != nil || base.Scheme != "https" && base.Scheme != "http" || base.Host == "" || base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return nil, errors.New("client: BaseURL: want https://HOST, without user, password, query and fragment") // it may contain a password
	}
	if strings.ContainsFunc(config.Key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("client: Key has blanks, line ends or characters that no key has; is it more than the key?")
	}
	config.UserAgent = cmp.Or(config.UserAgent, UserAgentDefault)
	config.Retries = max(0, cmp.Or(config.Retries, RetriesDefault))
	config.WaitMax = cmp.Or(config.WaitMax, WaitMaxDefault)
	if config.Wait == nil {
		config.Wait = sleep
	}
	httpClient := http.Client{Timeout: TimeoutDefault}
	if config.HTTPClient != nil {
		httpClient = *config.HTTPClient
	}
	httpClient.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{config, strings.TrimRight(strings.TrimSuffix(strings.TrimRight(base.String(), "/"), "/v1"), "/"), &httpClient}, nil
}

// sleep waits in real time. It is the default of Config.Wait.
func sleep(ctx context.Context, wait time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	<-waiting.Done()
	return ctx.Err()
}

// BaseURL returns the URL of the node, without a slash at the end.
func (c *Client) BaseURL() string { return c.base }

// call is a request to send.
type call struct {
	method, path string // path is percent-encoded
	query        url.Values
	body         any    // nil = none
	secret       string // for the Authorization header; "" = none
	idempotent   bool
}

// target returns the path with the query.
func (q *call) target() string {
	if len(q.query) == 0 {
		return q.path
	}
	return q.path + "?" + q.query.Encode()
}

// do sends a call with retries and decodes the response into result. A nil result means a response without a body.
func (c *Client) do(ctx context.Context, q *call, result any) error {
	body, err := c.sendWithRetries(ctx, q)
	if err == nil && result != nil {
		if err = json.Unmarshal(body, result); err != nil {
			err = fmt.Errorf("the response is not JSON as in the API specification: %w", err)
		}
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", q.method, q.target(), err)
	}
	return nil
}

// sendWithRetries sends a call until it succeeds or cannot be retried.
func (c *Client) sendWithRetries(ctx context.Context, q *call) ([]byte, error) {
	for attempt := 0; ; attempt++ {
		body, err := c.sendOnce(ctx, q)
		if err == nil {
			return body, nil
		}
		wait, retry := q.retryDelay(err, attempt)
		deadline, limited := ctx.Deadline()
		retry = retry && attempt < c.config.Retries && wait <= c.config.WaitMax && (!limited || time.Until(deadline) > wait)
		if !retry || ctx.Err() != nil {
			if !q.idempotent && errors.Is(err, ErrNoResponse) {
				err = fmt.Errorf("%w; the request may have been executed: check before you send it again", err)
			}
			return nil, err
		}
		if waitErr := c.config.Wait(ctx, wait); waitErr != nil {
			return nil, fmt.Errorf("%w; waiting for one more try: %w", err, waitErr)
		}
	}
}

// The backoff begins at 250 ms and doubles with each attempt, up to 5 s. The wait is random, between half of the
// backoff and the whole.
const (
	backoffFirst = 250 * time.Millisecond
	backoffMax   = 5 * time.Second
)

// retryDelay returns the wait before the next attempt, or false if the call must not be retried.
func (q *call) retryDelay(err error, attempt int) (time.Duration, bool) {
	var apiErr *Error
	switch isError := errors.As(err, &apiErr); {
	case isError && apiErr.Code == CodeRequestedTooSoon:
		return 0, false // a code was sent, and a new code would invalidate that code
	case isError && apiErr.Code == CodeNone && !q.idempotent:
		return 0, false // the error is from a proxy; the node may have executed the call
	case isError && apiErr.Status == http.StatusTooManyRequests && apiErr.RetryAfter > 0:
		return apiErr.RetryAfter, true
	case isError && apiErr.Status == http.StatusServiceUnavailable && apiErr.RetryAfter > 0:
		return apiErr.RetryAfter + rand.N(apiErr.RetryAfter/4+1), true // the random part spreads retries
	case isError && apiErr.Status >= http.StatusInternalServerError, errors.Is(err, ErrNoResponse):
		limit := min(backoffMax, backoffFirst<<min(attempt, 10))
		return limit/2 + rand.N(limit/2+1), q.idempotent
	}
	return 0, false
}

// ErrNoResponse is wrapped by the error of a request without a response: the client could not connect, or the
// connection broke.
var ErrNoResponse = errors.New("no answer")

// sendOnce sends a call once and returns the body of the response.
func (c *Client) sendOnce(ctx context.Context, q *call) ([]byte, error) {
	var encoded []byte
	if q.body != nil {
		encoded, _ = json.Marshal(q.body) // maps of strings never fail
	}
	request, err := http.NewRequestWithContext(ctx, q.method, c.base+q.target(), bytes.NewReader(encoded))
	if err != nil {
		return nil, err
	}
	if q.body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if q.secret != "" {
		request.Header.Set("Authorization", "Bearer "+q.secret)
	}
	request.Header.Set("User-Agent", c.config.UserAgent)
	response, err := c.http.Do(request)
	if err != nil {
		if urlErr := (*url.Error)(nil); errors.As(err, &urlErr) {
			err = urlErr.Err // without method and URL, which do adds
		}
		return nil, fmt.Errorf("%w: %w", ErrNoResponse, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, bodyBytesMax+1))
	if err != nil {
		return nil, fmt.Errorf("%w: the body breaks off after %d bytes: %w", ErrNoResponse, len(body), err)
	}
	switch {
	case len(body) > bodyBytesMax:
		return nil, fmt.Errorf("the answer has more than %d bytes", bodyBytesMax)
	case response.StatusCode/100 != 2:
		return nil, readError(response, body)
	}
	return body, nil
}

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
	seconds, _ := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 17) // 0 for other text, more than a day at most
	e := &Error{Status: response.StatusCode, RequestID: response.Header.Get("X-Request-Id"), RetryAfter: time.Duration(seconds) * time.Second}
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
