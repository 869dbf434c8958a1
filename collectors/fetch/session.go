package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/publicsuffix"

	"github.com/tasard/tasard/collectors/source"
)

// redirectsMax bounds the redirects of one request.
const redirectsMax = 5

// session is the state of one Fetch.
type session struct {
	client     *Client
	definition *source.Definition
	page       *source.Page
	startedAt  time.Time
	cookies    http.CookieJar
	transport  *http.Transport
	secrets    secretTexts
	ended      func() error // the error of the context of the Fetch
}

// newSession returns the session of a Fetch. The end of ctx closes its connections.
func (c *Client) newSession(ctx context.Context, d *source.Definition, page int) (*session, *fetchError) {
	transport, fetchErr := c.newTransport(ctx, d)
	if fetchErr != nil {
		return nil, fetchErr
	}
	cookies, _ := cookiejar.New(&cookiejar.Options{PublicSuffixList: publicsuffix.List}) // it returns no error
	return &session{
		client: c, definition: d, page: &d.Pages[page], startedAt: c.config.Clock(),
		cookies: cookies, transport: transport, ended: ctx.Err,
	}, nil
}

// run sends the requests of the page in order. The document is the response to the final request.
func (s *session) run(ctx context.Context) (*source.Document, *fetchError) {
	var resp *rawResponse
	for i := range s.page.Requests {
		req, fetchErr := s.planRequest(i, resp)
		if fetchErr == nil {
			resp, fetchErr = s.send(ctx, req)
		}
		if fetchErr != nil {
			return nil, fetchErr
		}
	}
	return &source.Document{
		URL: resp.url.String(), ContentType: resp.header.Get("Content-Type"), Body: resp.body, FetchedAt: resp.receivedAt,
	}, nil
}

// doWithRetries sends a request up to triesMax times. It stops at an error that is not retryable, and if the next wait
// would exceed the timeout of the Fetch.
func (s *session) doWithRetries(ctx context.Context, req plannedRequest) (*rawResponse, *fetchError) {
	for try := 1; ; try++ {
		resp, fetchErr := s.doWithRedirects(ctx, req)
		if fetchErr == nil {
			return resp, nil
		}
		wait := max(backOffFirst<<(try-1), fetchErr.retryAfter)
		if fetchErr.retryable && try < triesMax && s.fitsTimeout(wait) && sleep(ctx, wait) == nil {
			continue
		}
		if try > 1 {
			fetchErr.failure.Detail += fmt.Sprintf(" (%d tries)", try)
		}
		return nil, fetchErr
	}
}

// fitsTimeout reports whether a wait that begins now ends before the timeout of the Fetch.
func (s *session) fitsTimeout(wait time.Duration) bool {
	return s.client.config.Clock().Sub(s.startedAt)+wait < s.client.config.FetchTimeout
}

// doWithRedirects sends a request and follows at most redirectsMax redirects, all within the same site. robots.txt must
// allow each of them; it does not apply to a source that has given the operator access.
func (s *session) doWithRedirects(ctx context.Context, req plannedRequest) (*rawResponse, *fetchError) {
	for hop := 0; ; hop++ {
		if !req.isRobots && !s.hasSecret() && !s.definition.IgnoreRobots {
			if fetchErr := s.checkRobots(ctx, req.url); fetchErr != nil {
				return nil, fetchErr
			}
		}
		resp, fetchErr := s.roundTrip(ctx, req)
		if fetchErr != nil {
			return nil, fetchErr
		}
		if !resp.isRedirect() {
			return resp, resp.check(req.isDocument)
		}
		if s.hasSecret() {
			return nil, resp.errorf(source.HTTPStatus, "a redirect to %s is not followed: the request has a secret", shorten(resp.header.Get("Location")))
		}
		target, fetchErr := resp.redirectTarget()
		if fetchErr != nil {
			return nil, fetchErr
		}
		if hop == redirectsMax {
			return nil, resp.errorf(source.HTTPStatus, "more than %d redirects, the last one to %s", redirectsMax, shorten(target.String()))
		}
		req = req.redirected(resp.status, target)
	}
}

// roundTrip locks the host, waits for the end of the host's pause, sends one request and reads the response.
func (s *session) roundTrip(ctx context.Context, req plannedRequest) (*rawResponse, *fetchError) {
	action, pause := req.method+" "+shorten(req.url.String()), s.client.config.Pause
	if s.definition.OAuth2 != nil && pause > 0 {
		pause = gatewayPause
	}
	host, err := s.client.lockHost(ctx, hostName(req.url))
	if err != nil {
		return nil, s.exchangeError(ctx, err, "wait for other requests to "+hostName(req.url))
	}
	defer func() { host.unlock(s.client.config.Clock(), pause) }()
	if err := sleep(ctx, host.wait(s.client.config.Clock())); err != nil {
		return nil, s.exchangeError(ctx, err, "pause before the next request to "+hostName(req.url))
	}
	ctx, cancel := context.WithTimeout(ctx, s.client.config.RequestTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, req.method, req.url.String(), strings.NewReader(req.body))
	if err != nil {
		return nil, newFetchError(source.Internal, "%s: %v", action, err).withCause(err)
	}
	request.Header = req.header.Clone()
	for _, cookie := range s.cookies.Cookies(req.url) {
		request.AddCookie(cookie)
	}
	response, err := s.transport.RoundTrip(request)
	if err != nil {
		return nil, s.exchangeError(ctx, err, action)
	}
	defer func() { _ = response.Body.Close() }() // readResponse has reported any error of the body
	s.cookies.SetCookies(req.url, response.Cookies())
	return s.readResponse(ctx, req, response, action)
}

// readResponse reads the body. req.limit applies to a response with status 200, errorBytesMax to all others.
func (s *session) readResponse(ctx context.Context, req plannedRequest, response *http.Response, action string) (*rawResponse, *fetchError) {
	s.secrets.redactHeader(response.Header) // at once: an error may quote the beginning of a header
	resp := &rawResponse{method: req.method, url: req.url, status: response.StatusCode, header: response.Header}
	limit, truncate := req.limit, req.truncate
	if resp.status == http.StatusSwitchingProtocols { // the body is the raw connection; the transport applies no timeout to it
		return nil, resp.errorf(source.HTTPStatus, "the server switches the protocol, want 200")
	}
	if resp.status != http.StatusOK {
		limit, truncate = errorBytesMax, true
	} else if encoding := resp.header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return nil, resp.errorf(source.WrongContent, "Content-Encoding %s, though only gzip was offered", shorten(encoding))
	}
	body, err := readBody(response.Body, response.ContentLength, limit, truncate)
	if err == nil {
		err = ctx.Err() // after the timeout, the body may be empty and look complete
	}
	switch {
	case errors.Is(err, errTooLarge):
		return nil, resp.errorf(source.WrongContent, "larger than %d bytes", limit)
	case err != nil:
		return nil, s.exchangeError(ctx, err, action)
	}
	resp.body, resp.receivedAt = body, s.client.config.Clock()
	if s.hasSecret() && !req.isToken { // a new token may contain the client's id
		resp.body = []byte(s.secrets.redact(string(body)))
	}
	return resp, nil
}

const (
	triesMax      = 3
	backOffFirst  = 2 * time.Second // wait after the first try; doubled after each further try
	retryAfterMax = 24 * time.Hour  // longer waits are shortened to this, so that sums of durations do not overflow
)

// readRetryAfter parses a Retry-After header: whole seconds, or a date (RFC 9110, section 10.2.3). It returns at most
// retryAfterMax, and 0 for an invalid header or a date in the past.
func readRetryAfter(text string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(strings.TrimSpace(text)); err == nil {
		return time.Duration(min(max(seconds, 0), int(retryAfterMax/time.Second))) * time.Second
	}
	date, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return min(max(date.Sub(now), 0), retryAfterMax)
}

// host serialises the requests to a host, with pauses. Goroutines lock it in the order of their calls.
type host struct {
	token       chan struct{} // contains one element while the host is locked
	nextRequest time.Time     // end of the pause; guarded by token
	pause       time.Duration // guarded by token
}

// lockHost locks a host by name; the caller must unlock it. If ctx ends first, lockHost returns its error.
func (c *Client) lockHost(ctx context.Context, name string) (*host, error) {
	value, _ := c.hosts.LoadOrStore(name, &host{token: make(chan struct{}, 1)})
	h := value.(*host)
	select {
	case h.token <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		<-h.token
		return nil, err
	}
	return h, nil
}

// unlock begins a pause and unlocks the host.
func (h *host) unlock(now time.Time, pause time.Duration) {
	h.nextRequest, h.pause = now.Add(pause), pause
	<-h.token
}

// wait returns the remaining pause, at most h.pause. Without this limit, a clock set back would lengthen the pause.
func (h *host) wait(now time.Time) time.Duration { return min(h.nextRequest.Sub(now), h.pause) }

// sleep waits for the span, or returns the error of ctx as soon as ctx ends.
func sleep(ctx context.Context, span time.Duration) error {
	if span <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(span)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// plannedRequest is a request ready to send, with the limits of its response.
type plannedRequest struct {
	method     string
	url        *url.URL
	header     http.Header
	body       string
	limit      int  // maximum bytes of the response body
	truncate   bool // true = a longer body is cut off at limit; false = it is an error
	isDocument bool // last request of the page: its response is the document
	isRobots   bool // request for robots.txt, exempt from robots.txt
	isToken    bool // the response contains a token, so secrets are not removed from it
}

// planRequest prepares s.page.Requests[i]. previous is the response to request i-1, or nil.
func (s *session) planRequest(i int, previous *rawResponse) (plannedRequest, *fetchError) {
	r := &s.page.Requests[i]
	isDocument := i == len(s.page.Requests)-1
	address, fetchErr := s.address(r, previous)
	if fetchErr != nil {
		return plannedRequest{}, fetchErr
	}
	method := s.page.Extract.Method
	req := plannedRequest{
		method: cmp.Or(r.Method, http.MethodGet), url: address, header: s.header(accept(method, isDocument)),
		limit: pageBytesMax, isDocument: isDocument,
	}
	if isDocument && method == source.XLSXRows {
		req.limit = workbookBytesMax
	}
	switch {
	case r.JSON != "":
		req.body = string(r.JSON)
		req.header.Set("Content-Type", "application/json")
	case r.Form != nil:
		form := url.Values{}
		for name, value := range r.Form {
			form.Set(name, value)
		}
		req.body = form.Encode()
		req.header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, value := range r.Headers {
		req.header.Set(name, value)
	}
	return req, nil
}

// redirected returns the request after a redirect (RFC 9110, section 15.4). Status 307 and 308 keep the method, any
// other status changes it to GET.
func (req plannedRequest) redirected(status int, target *url.URL) plannedRequest {
	req.url = target
	if status != http.StatusTemporaryRedirect && status != http.StatusPermanentRedirect && req.method != http.MethodGet {
		req.method, req.body = http.MethodGet, ""
		req.header = req.header.Clone()
		req.header.Del("Content-Type")
	}
	return req
}

// address returns the address of a request: r.URL or, with r.AddressFrom, an attribute of an HTML element in the
// previous response.
func (s *session) address(r *source.Request, previous *rawResponse) (*url.URL, *fetchError) {
	if r.AddressFrom == nil {
		address, err := url.Parse(r.URL)
		if err != nil {
			return nil, newFetchError(source.Internal, "%q is not a web address; correct the definition", r.URL).withCause(err)
		}
		return address, nil
	}
	page := &source.Document{URL: previous.url.String(), ContentType: previous.header.Get("Content-Type"), Body: previous.body}
	text, err := source.AttributeOf(page, r.AddressFrom.Selector, r.AddressFrom.Attribute)
	if err != nil {
		return nil, newFetchError(source.Layout, "%v", err).withCause(err)
	}
	location := previous.url.String() + ": " + r.AddressFrom.Attribute + " of " + r.AddressFrom.Selector
	address, err := previous.url.Parse(text)
	if err != nil {
		return nil, newFetchError(source.Layout, "%s names %s, which is not an address", location, shorten(text)).withCause(err)
	}
	if reason := addressProblem(previous.url, address); reason != "" {
		return nil, newFetchError(source.Layout, "%s names %s, which is not requested: %s", location, shorten(text), reason)
	}
	address.Fragment, address.RawFragment = "", ""
	return address, nil
}

// header returns the headers of every request.
func (s *session) header(accept string) http.Header {
	return http.Header{"User-Agent": {s.client.config.UserAgent}, "Accept": {accept}, "Accept-Language": {"es-DO,es;q=0.9"}}
}

// accept returns the Accept header of a request. For the document of a page it depends on the extraction method;
// earlier requests ask for HTML.
func accept(method source.Method, isDocument bool) string {
	const page = "text/html,application/xhtml+xml,*/*;q=0.5"
	switch {
	case !isDocument:
		return page
	case method == source.JSONFields, method == source.JSONRows:
		return "application/json"
	case method == source.XLSXRows:
		return "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet,application/vnd.ms-excel,*/*;q=0.5"
	case method == source.TextRegex:
		return "text/plain,text/html,*/*;q=0.5"
	default:
		return page
	}
}
