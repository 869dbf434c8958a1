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

// call is one request as it is sent, and what may come back.
type call struct {
	method string
	url    *url.URL
	header http.Header
	body   string
	limit  int  // bytes of the answer
	cut    bool // what is beyond the limit is left out instead of refused
	last   bool // the answer is the document
	robots bool // the call is for a robots.txt, which nobody asks for leave
}

// newSession prepares a Fetch. lines are closed by whoever made them.
func (c *Client) newSession(d *source.Definition, page int, lines *connections) (*session, *fault) {
	transport, refused := c.newTransport(d, lines)
	if refused != nil {
		return nil, refused
	}
	cookies, err := cookiejar.New(&cookiejar.Options{PublicSuffixList: publicsuffix.List})
	if err != nil {
		return nil, newFault(source.Internal, "make a jar for cookies: %v", err).because(err)
	}
	return &session{
		client: c, definition: d, page: &d.Pages[page], key: pageKey{d.ID, page}, began: c.config.Clock(),
		cookies: cookies, transport: transport,
	}, nil
}

// run makes the requests of the page in their order. The last answer is the document.
func (s *session) run(ctx context.Context) (*source.Document, *fault) {
	var a *answer
	for i := range s.page.Requests {
		c, refused := s.step(i, a)
		if refused != nil {
			return nil, refused
		}
		var f *fault
		if a, f = s.request(ctx, c); f != nil {
			return nil, f
		}
	}
	if a == nil {
		return nil, newFault(source.Internal, "the definition asks for nothing; give the page a request")
	}
	return &source.Document{URL: a.url.String(), ContentType: a.header.Get("Content-Type"), Body: a.body, FetchedAt: a.at}, nil
}

// request tries a call until it is answered, or failed for good, or the budget has no room for another try.
func (s *session) request(ctx context.Context, c call) (*answer, *fault) {
	for try := 1; ; try++ {
		a, f := s.follow(ctx, c)
		if f == nil {
			return a, nil
		}
		wait := s.client.chance.backOff(try, f.after)
		if f.heals && try < triesMax && s.fits(wait) && pass(ctx, wait) == nil {
			continue
		}
		if try > 1 {
			f.failure.Detail += fmt.Sprintf(" (%d tries)", try)
		}
		return nil, f
	}
}

// fits reports that there is time for a wait and for something after it.
func (s *session) fits(wait time.Duration) bool {
	return s.client.config.Clock().Sub(s.began)+wait < s.client.config.BudgetMax
}

// follow makes a call and goes where it is redirected to, within the site.
func (s *session) follow(ctx context.Context, c call) (*answer, *fault) {
	for hop := 0; ; hop++ {
		a, f := s.ask(ctx, c)
		if f != nil {
			return nil, f
		}
		if !a.isRedirect() {
			return a, a.judge(c.last)
		}
		to, f := a.target()
		if f != nil {
			return nil, f
		}
		if hop == redirectsMax {
			return nil, a.fault(source.HTTPStatus, fmt.Sprintf("more than %d redirects, the last one to %s", redirectsMax, shown(to.String())))
		}
		c = c.redirected(a.status, to)
	}
}

// redirected is the call that a redirect makes of a call (RFC 9110, 15.4): after 307 and 308 the same, else a GET.
func (c call) redirected(status int, to *url.URL) call {
	c.url = to
	if status != http.StatusTemporaryRedirect && status != http.StatusPermanentRedirect && c.method != http.MethodGet {
		c.method, c.body = http.MethodGet, ""
		c.header = c.header.Clone()
		c.header.Del("Content-Type")
	}
	return c
}

// ask makes one call if robots.txt allows it, conditional where the document is known. What is remembered stands for "not modified".
func (s *session) ask(ctx context.Context, c call) (*answer, *fault) {
	var pause time.Duration
	if !c.robots {
		var refused *fault
		if pause, refused = s.allowed(ctx, c.url); refused != nil {
			return nil, refused
		}
	}
	if !c.last {
		return s.exchange(ctx, c, pause)
	}
	known := s.client.memory.find(s.key, s.definition, s.client.config.Clock())
	if known == nil || c.method != http.MethodGet || known.url != c.url.String() {
		known = nil
	} else {
		c.header = c.header.Clone()
		known.ask(c.header)
	}
	a, f := s.exchange(ctx, c, pause)
	switch {
	case f != nil:
		return nil, f
	case known != nil && a.status == http.StatusNotModified:
		return known.answer(a), nil
	case a.status == http.StatusOK:
		s.client.memory.keep(s.key, s.definition, a)
	}
	return a, nil
}

// exchange makes one request in the host's turn and reads the answer.
func (s *session) exchange(ctx context.Context, c call, pause time.Duration) (*answer, *fault) {
	what := c.method + " " + shown(c.url.String())
	turn, err := s.client.hosts.enter(ctx, hostName(c.url))
	if err != nil {
		return nil, s.broken(ctx, err, nil, "wait for "+hostName(c.url)+", which others ask")
	}
	defer s.client.leave(turn, pause)
	if err := pass(ctx, turn.value.left(s.client.config.Clock())); err != nil {
		return nil, s.broken(ctx, err, nil, "pause before asking "+hostName(c.url)+" again")
	}
	ctx, cancel := context.WithTimeout(ctx, s.client.config.RequestMax)
	defer cancel()
	var handshake atomic.Pointer[error]
	traced := httptrace.WithClientTrace(ctx, watchHandshake(&handshake))
	request, err := http.NewRequestWithContext(traced, c.method, c.url.String(), strings.NewReader(c.body))
	if err != nil {
		return nil, newFault(source.Internal, "%s: %v", what, err).because(err)
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
		return nil, s.broken(ctx, err, refused, what)
	}
	defer func() { _ = response.Body.Close() }() // the whole body is in memory, or the failure is told
	s.cookies.SetCookies(c.url, response.Cookies())
	return s.receive(ctx, c, response, what)
}

// watchHandshake keeps the error of a TLS handshake, which tells a bad certificate from a bad connection.
func watchHandshake(kept *atomic.Pointer[error]) *httptrace.ClientTrace {
	return &httptrace.ClientTrace{TLSHandshakeDone: func(_ tls.ConnectionState, err error) {
		if err != nil {
			kept.Store(&err)
		}
	}}
}

// receive reads the whole body, within its limit.
func (s *session) receive(ctx context.Context, c call, response *http.Response, what string) (*answer, *fault) {
	a := &answer{method: c.method, url: c.url, status: response.StatusCode, header: response.Header}
	limit, cut := c.limit, c.cut
	if a.status == http.StatusSwitchingProtocols { // its body is the connection, which no timeout of the transport ends
		return nil, a.fault(source.HTTPStatus, "the server changes the protocol, wanted 200")
	}
	if a.status != http.StatusOK {
		limit, cut = errorBytesMax, true
	} else if packing := response.Header.Get("Content-Encoding"); packing != "" && !strings.EqualFold(packing, "identity") {
		return nil, a.fault(source.WrongContent, "packed as "+shown(packing)+", though only gzip was offered")
	}
	body, err := readBody(response.Body, response.ContentLength, limit, cut)
	if err == nil {
		err = ctx.Err() // a server that notices the end of time may still send an empty answer, which is none
	}
	switch {
	case errors.Is(err, errTooLarge):
		return nil, a.fault(source.WrongContent, fmt.Sprintf("larger than %d bytes", limit))
	case err != nil:
		return nil, s.broken(ctx, err, nil, what)
	}
	a.body, a.at = body, s.client.config.Clock()
	return a, nil
}

// broken says why there is no whole answer; for a timeout, which of both limits it was.
func (s *session) broken(ctx context.Context, err, handshake error, what string) *fault {
	f := brokenExchange(ctx, err, handshake, what)
	if f.failure.Kind == source.Timeout {
		f.failure.Detail += fmt.Sprintf(" (at most %v for a request, %v for all of a fetch)", s.client.config.RequestMax, s.client.config.BudgetMax)
	}
	return f
}
