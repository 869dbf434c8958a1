package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/publicsuffix"

	"github.com/tasard/tasard/collectors/source"
)

// redirectsMax bounds how often one request may be sent elsewhere.
const redirectsMax = 5

// session is one Fetch: its cookies, its connections, its budget.
type session struct {
	client     *Client
	definition *source.Definition
	page       *source.Page
	key        pageKey
	began      time.Time
	cookies    http.CookieJar
	transport  *http.Transport
}

// plannedRequest is one request as it is sent, and what may come back.
type plannedRequest struct {
	method     string
	url        *url.URL
	header     http.Header
	body       string
	limit      int  // bytes of the answer
	truncate   bool // what is beyond the limit is left out instead of refused
	isDocument bool // the answer is the document
	robots     bool // the call is for a robots.txt, which nobody asks for leave
}

// newSession prepares a Fetch. lines are closed by whoever made them.
func (c *Client) newSession(d *source.Definition, page int, lines *connections) (*session, *fetchError) {
	transport, refused := c.newTransport(d, lines)
	if refused != nil {
		return nil, refused
	}
	cookies, err := cookiejar.New(&cookiejar.Options{PublicSuffixList: publicsuffix.List})
	if err != nil {
		return nil, newFetchError(source.Internal, "make a jar for cookies: %v", err).withCause(err)
	}
	return &session{
		client: c, definition: d, page: &d.Pages[page], key: pageKey{d.ID, page}, began: c.config.Clock(),
		cookies: cookies, transport: transport,
	}, nil
}

// run makes the requests of the page in their order. The last answer is the document.
func (s *session) run(ctx context.Context) (*source.Document, *fetchError) {
	var a *rawResponse
	for i := range s.page.Requests {
		c, refused := s.planRequest(i, a)
		if refused != nil {
			return nil, refused
		}
		var f *fetchError
		if a, f = s.doWithRetries(ctx, c); f != nil {
			return nil, f
		}
	}
	if a == nil {
		return nil, newFetchError(source.Internal, "the definition asks for nothing; give the page a request")
	}
	return &source.Document{URL: a.url.String(), ContentType: a.header.Get("Content-Type"), Body: a.body, FetchedAt: a.receivedAt}, nil
}

// doWithRetries tries a call until it is answered, or failed for good, or the budget has no room for another try.
func (s *session) doWithRetries(ctx context.Context, c plannedRequest) (*rawResponse, *fetchError) {
	for try := 1; ; try++ {
		a, f := s.doWithRedirects(ctx, c)
		if f == nil {
			return a, nil
		}
		wait := s.client.jitter.backOff(try, f.retryAfter)
		if f.retryable && try < triesMax && s.fitsTimeout(wait) && sleep(ctx, wait) == nil {
			continue
		}
		if try > 1 {
			f.failure.Detail += fmt.Sprintf(" (%d tries)", try)
		}
		return nil, f
	}
}

// fitsTimeout reports that there is time for a wait and for something after it.
func (s *session) fitsTimeout(wait time.Duration) bool {
	return s.client.config.Clock().Sub(s.began)+wait < s.client.config.FetchTimeout
}

// doWithRedirects makes a call and goes where it is redirected to, within the site.
func (s *session) doWithRedirects(ctx context.Context, c plannedRequest) (*rawResponse, *fetchError) {
	for hop := 0; ; hop++ {
		a, f := s.doConditional(ctx, c)
		if f != nil {
			return nil, f
		}
		if !a.isRedirect() {
			return a, a.check(c.isDocument)
		}
		to, f := a.redirectTarget()
		if f != nil {
			return nil, f
		}
		if hop == redirectsMax {
			return nil, a.errorf(source.HTTPStatus, fmt.Sprintf("more than %d redirects, the last one to %s", redirectsMax, shorten(to.String())))
		}
		c = c.redirected(a.status, to)
	}
}

// redirected is the call that a redirect makes of a call (RFC 9110, 15.4): after 307 and 308 the same, else a GET.
func (c plannedRequest) redirected(status int, to *url.URL) plannedRequest {
	c.url = to
	if status != http.StatusTemporaryRedirect && status != http.StatusPermanentRedirect && c.method != http.MethodGet {
		c.method, c.body = http.MethodGet, ""
		c.header = c.header.Clone()
		c.header.Del("Content-Type")
	}
	return c
}

// setValidators makes one call if robots.txt allows it, conditional where the document is known. What is remembered stands for "not modified".
func (s *session) doConditional(ctx context.Context, c plannedRequest) (*rawResponse, *fetchError) {
	var pause time.Duration
	if !c.robots {
		var refused *fetchError
		if pause, refused = s.checkRobots(ctx, c.url); refused != nil {
			return nil, refused
		}
	}
	if !c.isDocument {
		return s.roundTrip(ctx, c, pause)
	}
	known := s.client.cache.get(s.key, s.definition, s.client.config.Clock())
	if known == nil || c.method != http.MethodGet || known.url != c.url.String() {
		known = nil
	} else {
		c.header = c.header.Clone()
		known.setValidators(c.header)
	}
	a, f := s.roundTrip(ctx, c, pause)
	switch {
	case f != nil:
		return nil, f
	case known != nil && a.status == http.StatusNotModified:
		return known.response(a), nil
	case a.status == http.StatusOK:
		s.client.cache.put(s.key, s.definition, a)
	}
	return a, nil
}

// roundTrip makes one request in the host's turn and reads the answer.
func (s *session) roundTrip(ctx context.Context, c plannedRequest, pause time.Duration) (*rawResponse, *fetchError) {
	what := c.method + " " + shorten(c.url.String())
	turn, err := s.client.hosts.lock(ctx, hostName(c.url))
	if err != nil {
		return nil, s.exchangeError(ctx, err, nil, "wait for "+hostName(c.url)+", which others ask")
	}
	defer s.client.unlockHost(turn, pause)
	if err := sleep(ctx, turn.value.wait(s.client.config.Clock())); err != nil {
		return nil, s.exchangeError(ctx, err, nil, "pause before asking "+hostName(c.url)+" again")
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
		if told := handshake.Load(); told != nil {
			refused = *told
		}
		return nil, s.exchangeError(ctx, err, refused, what)
	}
	defer func() { _ = response.Body.Close() }() // the whole body is in memory, or the failure is told
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
	limit, cut := c.limit, c.truncate
	if a.status == http.StatusSwitchingProtocols { // its body is the connection, which no timeout of the transport ends
		return nil, a.errorf(source.HTTPStatus, "the server changes the protocol, wanted 200")
	}
	if a.status != http.StatusOK {
		limit, cut = errorBytesMax, true
	} else if packing := response.Header.Get("Content-Encoding"); packing != "" && !strings.EqualFold(packing, "identity") {
		return nil, a.errorf(source.WrongContent, "packed as "+shorten(packing)+", though only gzip was offered")
	}
	body, err := readBody(response.Body, response.ContentLength, limit, cut)
	if err == nil {
		err = ctx.Err() // a server that notices the end of time may still send an empty answer, which is none
	}
	switch {
	case errors.Is(err, errTooLarge):
		return nil, a.errorf(source.WrongContent, fmt.Sprintf("larger than %d bytes", limit))
	case err != nil:
		return nil, s.exchangeError(ctx, err, nil, what)
	}
	a.body, a.receivedAt = body, s.client.config.Clock()
	return a, nil
}

// exchangeError says why there is no whole answer; for a timeout, which of both limits it was.
func (s *session) exchangeError(ctx context.Context, err, handshake error, what string) *fetchError {
	f := exchangeError(ctx, err, handshake, what)
	if f.failure.Kind == source.Timeout {
		f.failure.Detail += fmt.Sprintf(" (at most %v for a request, %v for all of a fetch)", s.client.config.RequestTimeout, s.client.config.FetchTimeout)
	}
	return f
}
