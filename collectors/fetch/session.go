package fetch

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
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

// Limits of a response body after decompression, and of the header.
const (
	pageBytesMax     = 5 << 20   // HTML, JSON, text
	workbookBytesMax = 10 << 20  // XLSX, XLS
	robotsBytesMax   = 512 << 10 // a longer robots.txt is cut off; RFC 9309, section 2.5, demands at least 500 KiB
	errorBytesMax    = 64 << 10  // error pages are cut off; a bot-protection page is recognised by its beginning
	headerBytesMax   = 64 << 10
)

// smallBodyBytes is the size from which on a body gets a buffer for the largest one.
const smallBodyBytes = 64 << 10

// rawResponse is the response to one request, with its body.
type rawResponse struct {
	method     string
	url        *url.URL
	status     int
	header     http.Header
	body       []byte
	receivedAt time.Time // time of the last byte
}

var errTooLarge = errors.New("too large")

// readBody reads a body of at most limit bytes. A longer body is errTooLarge, or with truncate is cut off at limit.
// contentLength is -1 if unknown.
func readBody(body io.Reader, contentLength int64, limit int, truncate bool) ([]byte, error) {
	if contentLength > int64(limit) && !truncate {
		return nil, errTooLarge
	}
	limited := io.LimitReader(body, int64(limit)+1) // one byte more, to detect a body that is too long
	buffer := &bytes.Buffer{}
	_, err := io.CopyN(buffer, limited, smallBodyBytes)
	if err == nil { // room for the whole at once: a buffer that doubles needs memory for its last two sizes
		buffer = bytes.NewBuffer(append(make([]byte, 0, limit+2*bytes.MinRead), buffer.Bytes()...))
		_, err = buffer.ReadFrom(limited)
	}
	switch read := buffer.Bytes(); {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, err
	case len(read) > limit && !truncate:
		return nil, errTooLarge
	case len(read) < limit/4:
		return bytes.Clone(read), nil // a page is kept longer than its buffer
	default:
		return read[:min(len(read), limit)], nil
	}
}

func (r *rawResponse) isRedirect() bool {
	return slices.Contains([]int{301, 302, 303, 307, 308}, r.status)
}

// check returns nil for a good response, else an error with the reason. isDocument means that a response without a body
// is an error. Do not call check for a redirect.
func (r *rawResponse) check(isDocument bool) *fetchError {
	switch {
	case r.status == http.StatusOK || r.status == http.StatusNoContent || r.status == http.StatusResetContent:
		if !isDocument || r.status == http.StatusOK && len(r.body) > 0 {
			return nil
		}
		return r.errorf(source.Empty, "a response without a body")
	case r.status == http.StatusForbidden:
		return r.errorf(source.Blocked, "the server forbids the request")
	case r.status == http.StatusUnauthorized && len(r.body) > 0:
		return r.errorf(source.Blocked, "the server asks for a login")
	case r.status >= 400 && r.isChallenge():
		return r.errorf(source.Blocked, "the challenge page of a bot protection")
	}
	fetchErr := r.errorf(source.HTTPStatus, "want 200")
	if slices.Contains([]int{429, 500, 502, 503, 504}, r.status) { // the same request may succeed a few seconds later
		fetchErr.retryable, fetchErr.retryAfter = true, readRetryAfter(r.header.Get("Retry-After"), r.receivedAt)
	}
	return fetchErr
}

func (r *rawResponse) isChallenge() bool {
	page := source.Document{ContentType: r.header.Get("Content-Type"), Body: r.body}
	return r.header.Get("Cf-Mitigated") != "" || page.Challenge() != ""
}

// errorf returns an error that names the request, the formatted text and the status.
func (r *rawResponse) errorf(kind source.FailureKind, format string, args ...any) *fetchError {
	status := http.StatusText(r.status)
	if status == "" {
		status = "unknown"
	}
	fetchErr := newFetchError(kind, "%s %s: %s, found %d %s",
		r.method, shorten(r.url.String()), fmt.Sprintf(format, args...), r.status, status)
	fetchErr.status, fetchErr.failure.Status = r.status, r.status
	return fetchErr
}

// redirectTarget returns the target of a redirect, or an error if the redirect is forbidden.
func (r *rawResponse) redirectTarget() (*url.URL, *fetchError) {
	location := r.header.Get("Location")
	if location == "" {
		return nil, r.errorf(source.HTTPStatus, "a redirect names no target")
	}
	target, err := r.url.Parse(location)
	if err != nil {
		return nil, r.errorf(source.HTTPStatus, "a redirect to %s, which is not a URL", shorten(location)).withCause(err)
	}
	if reason := addressProblem(r.url, target); reason != "" {
		return nil, r.errorf(source.HTTPStatus, "a redirect to %s is not followed: %s", shorten(location), reason)
	}
	target.Fragment, target.RawFragment = "", ""
	return target, nil
}

// shorten returns a server's text for an error message: without control characters, and cut to about 200 bytes.
func shorten(text string) string { return sanitize(text, 200) }

func sanitize(text string, bytesMax int) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, text)
	if len(text) > bytesMax {
		text = strings.ToValidUTF8(text[:bytesMax], "") + "…"
	}
	return text
}

// addressProblem returns the reason why a request to target is forbidden, or "". base is the address of the page or
// redirect that refers to target. target must be on the same site, and must not go from https to http. Its port must be
// the scheme's default, or base must have the same host and port. It must not contain a user name or password.
func addressProblem(base, target *url.URL) string {
	switch {
	case target.Scheme != "http" && target.Scheme != "https":
		return "it is not a web address"
	case target.Hostname() == "":
		return "it names no host"
	case target.User != nil:
		return "it carries a name and password"
	case base.Scheme == "https" && target.Scheme == "http":
		return "it goes from https to http, which is not protected"
	case !sameSite(hostName(base), hostName(target)):
		return "it is another site than " + hostName(base)
	case port(target) != defaultPort(target) && (hostName(base) != hostName(target) || port(base) != port(target)):
		return "it goes to another port"
	default:
		return ""
	}
}

// sameSite reports whether two hosts have the same registrable domain, or are the same IP address.
func sameSite(a, b string) bool {
	return a == b || net.ParseIP(a) == nil && net.ParseIP(b) == nil && source.Site(a) == source.Site(b)
}

// hostName returns the host in normal form: lower case, without a final dot.
func hostName(address *url.URL) string {
	return strings.TrimSuffix(strings.ToLower(address.Hostname()), ".")
}

// port returns the port of an address, or the default of its scheme.
func port(address *url.URL) string { return cmp.Or(address.Port(), defaultPort(address)) }

func defaultPort(address *url.URL) string {
	return map[string]string{"http": "80", "https": "443"}[address.Scheme]
}
