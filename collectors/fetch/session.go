package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/publicsuffix"

	"github.com/tasard/tasard/collectors/source"
)

// redirectsMax bounds the redirects of one request.
const redirectsMax = 5

// session is one Fetch: its cookies, connections and start time.
type session struct {
	client     *Client
	definition *source.Definition
	page       *source.Page
	key        pageKey
	began      time.Time
	cookies    http.CookieJar
	transport  *http.Transport
}

// newSession prepares a Fetch. The caller closes the connections.
func (c *Client) newSession(d *source.Definition, page int, opened *connections) (*session, *fetchError) {
	transport, failed := c.newTransport(d, opened)
	if failed != nil {
		return nil, failed
	}
	cookies, err := cookiejar.New(&cookiejar.Options{PublicSuffixList: publicsuffix.List})
	if err != nil {
		return nil, newFetchError(source.Internal, "make a cookie jar: %v", err).withCause(err)
	}
	return &session{
		client: c, definition: d, page: &d.Pages[page], key: pageKey{d.ID, page}, began: c.config.Clock(),
		cookies: cookies, transport: transport,
	}, nil
}

// run sends the requests of the page in order. The last response is the document.
func (s *session) run(ctx context.Context) (*source.Document, *fetchError) {
	var a *rawResponse
	for i := range s.page.Requests {
		c, failed := s.planRequest(i, a)
		if failed == nil {
			a, failed = s.doWithRetries(ctx, c)
		}
		if failed != nil {
			return nil, failed
		}
	}
	if a == nil {
		return nil, newFetchError(source.Internal, "the definition has no request; give the page one")
	}
	return &source.Document{URL: a.url.String(), ContentType: a.header.Get("Content-Type"), Body: a.body, FetchedAt: a.receivedAt}, nil
}

// doWithRetries sends a request until it succeeds, fails for good, or no further try fits into the timeout.
func (s *session) doWithRetries(ctx context.Context, c plannedRequest) (*rawResponse, *fetchError) {
	for try := 1; ; try++ {
		a, failed := s.doWithRedirects(ctx, c)
		if failed == nil {
			return a, nil
		}
		wait := s.client.jitter.backOff(try, failed.retryAfter)
		if failed.retryable && try < triesMax && s.fitsTimeout(wait) && sleep(ctx, wait) == nil {
			continue
		}
		if try > 1 {
			failed.failure.Detail += fmt.Sprintf(" (%d tries)", try)
		}
		return nil, failed
	}
}

// fitsTimeout reports whether there is time for a wait and for something after it.
func (s *session) fitsTimeout(wait time.Duration) bool {
	return s.client.config.Clock().Sub(s.began)+wait < s.client.config.FetchTimeout
}

// doWithRedirects sends a request and follows its redirects within the site.
func (s *session) doWithRedirects(ctx context.Context, c plannedRequest) (*rawResponse, *fetchError) {
	for hop := 0; ; hop++ {
		a, failed := s.doConditional(ctx, c)
		if failed != nil {
			return nil, failed
		}
		if !a.isRedirect() {
			return a, a.check(c.isDocument)
		}
		to, failed := a.redirectTarget()
		if failed != nil {
			return nil, failed
		}
		if hop == redirectsMax {
			return nil, a.errorf(source.HTTPStatus, "more than %d redirects, the last one to %s", redirectsMax, shorten(to.String()))
		}
		c = c.redirected(a.status, to)
	}
}

// doConditional sends a request if robots.txt allows it. The request for a cached document is conditional, and "not
// modified" is answered from the cache.
func (s *session) doConditional(ctx context.Context, c plannedRequest) (*rawResponse, *fetchError) {
	var crawlDelay time.Duration
	if !c.robots {
		var failed *fetchError
		if crawlDelay, failed = s.checkRobots(ctx, c.url); failed != nil {
			return nil, failed
		}
	}
	if !c.isDocument {
		return s.roundTrip(ctx, c, crawlDelay)
	}
	cached := s.client.cache.get(s.key, s.definition, s.client.config.Clock())
	if cached == nil || c.method != http.MethodGet || cached.url != c.url.String() {
		cached = nil
	} else {
		c.header = c.header.Clone()
		cached.setValidators(c.header)
	}
	a, failed := s.roundTrip(ctx, c, crawlDelay)
	switch {
	case failed != nil:
		return nil, failed
	case cached != nil && a.status == http.StatusNotModified:
		return cached.response(a), nil
	case a.status == http.StatusOK:
		s.client.cache.put(s.key, s.definition, a)
	}
	return a, nil
}

// roundTrip locks the host, waits for its pause, sends one request and reads the response.
func (s *session) roundTrip(ctx context.Context, c plannedRequest, crawlDelay time.Duration) (*rawResponse, *fetchError) {
	what := c.method + " " + shorten(c.url.String())
	host := hostName(c.url)
	lock, err := s.client.hosts.lock(ctx, host)
	if err != nil {
		return nil, s.exchangeError(ctx, err, nil, "wait for other requests to "+host)
	}
	defer s.client.unlockHost(lock, crawlDelay)
	if err := sleep(ctx, lock.value.wait(s.client.config.Clock())); err != nil {
		return nil, s.exchangeError(ctx, err, nil, "pause before the next request to "+host)
	}
	ctx, cancel := context.WithTimeout(ctx, s.client.config.RequestTimeout)
	defer cancel()
	var handshake atomic.Pointer[error]
	traced := httptrace.WithClientTrace(ctx, watchHandshake(&handshake))
	request, err := http.NewRequestWithContext(traced, c.method, c.url.String(), strings.NewReader(c.body))
	if err != nil {
		return nil, newFetchError(source.Internal, "%s: %v", what, err).withCause(err)
	}
	request.Header = c.header.Clone()
	for _, cookie := range s.cookies.Cookies(c.url) {
		request.AddCookie(cookie)
	}
	response, err := s.transport.RoundTrip(request)
	if err != nil {
		var refused error
		if seen := handshake.Load(); seen != nil {
			refused = *seen
		}
		return nil, s.exchangeError(ctx, err, refused, what)
	}
	defer func() { _ = response.Body.Close() }() // the body has been read, or the failure is reported
	s.cookies.SetCookies(c.url, response.Cookies())
	return s.readResponse(ctx, c, response, what)
}

// watchHandshake keeps the error of a TLS handshake, which tells a bad certificate from a bad connection.
func watchHandshake(kept *atomic.Pointer[error]) *httptrace.ClientTrace {
	return &httptrace.ClientTrace{TLSHandshakeDone: func(_ tls.ConnectionState, err error) {
		if err != nil {
			kept.Store(&err)
		}
	}}
}

// readResponse reads the whole body, within its limit.
func (s *session) readResponse(ctx context.Context, c plannedRequest, response *http.Response, what string) (*rawResponse, *fetchError) {
	a := &rawResponse{method: c.method, url: c.url, status: response.StatusCode, header: response.Header}
	limit, truncate := c.limit, c.truncate
	if a.status == http.StatusSwitchingProtocols { // its body is the connection, which no timeout of the transport ends
		return nil, a.errorf(source.HTTPStatus, "the server switches the protocol, want 200")
	}
	if a.status != http.StatusOK {
		limit, truncate = errorBytesMax, true
	} else if encoding := a.header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return nil, a.errorf(source.WrongContent, "Content-Encoding %s, though only gzip was offered", shorten(encoding))
	}
	body, err := readBody(response.Body, response.ContentLength, limit, truncate)
	if err == nil {
		err = ctx.Err() // a server that notices the timeout may still send an empty response
	}
	switch {
	case errors.Is(err, errTooLarge):
		return nil, a.errorf(source.WrongContent, "larger than %d bytes", limit)
	case err != nil:
		return nil, s.exchangeError(ctx, err, nil, what)
	}
	a.body, a.receivedAt = body, s.client.config.Clock()
	return a, nil
}

// exchangeError is the function of this name; for a timeout it adds both limits.
func (s *session) exchangeError(ctx context.Context, err, handshake error, what string) *fetchError {
	failed := exchangeError(ctx, err, handshake, what)
	if failed.failure.Kind == source.Timeout {
		failed.failure.Detail += fmt.Sprintf(" (at most %v for a request, %v for a fetch)",
			s.client.config.RequestTimeout, s.client.config.FetchTimeout)
	}
	return failed
}
