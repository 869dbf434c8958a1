package pages

import (
	"cmp"
	"errors"
	"net/http"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/internal/encode"
	"github.com/tasard/tasard/httpapi/internal/fields"
	"github.com/tasard/tasard/httpapi/internal/rendered"
)

// Request is a request for a page.
type Request struct {
	*http.Request
	Language Language
	Page     string     // escaped path of the page in Spanish, such as /docs for /en/docs
	Address  netip.Addr // address of the client
	ID       string     // X-Request-Id of the response
	Now      time.Time
}

// Handler handles a request for a page. It usually calls one of the Frame methods Write, WriteCached, NotFound and
// Fail.
type Handler func(w http.ResponseWriter, r *Request)

// Handle registers a handler for a page in both languages, such as /docs and /en/docs. The path may contain wildcards
// of http.ServeMux. Only the path "/" may end with a slash.
func (f *Frame) Handle(mux *http.ServeMux, method, path string, handler Handler) {
	for _, language := range Languages() {
		route := language.Path(path)
		if route == "/" {
			route = "/{$}"
		}
		f.handle(mux, method, route, handler)
	}
}

func (f *Frame) handle(mux *http.ServeMux, method, path string, handler Handler) {
	mux.Handle(method+" "+path, f.limited(handler))
}

// PublicURL returns Config.PublicURL.
func (f *Frame) PublicURL() string { return f.config.PublicURL }

// Secure reports whether a request came over https, or browsers always use https.
func (f *Frame) Secure(r *http.Request) bool { return f.config.Secure || r.TLS != nil }

// hostPattern matches a host with an optional port. It allows no characters that are special in a shell, because
// readers copy commands with the host.
var hostPattern = regexp.MustCompile(`^(\[[0-9A-Fa-f:.]{2,45}\]|[0-9A-Za-z.-]{1,253})(:[0-9]{1,5})?$`)

// ServiceURL returns the origin of the site for examples: PublicURL, or else the request's host.
func (f *Frame) ServiceURL(r *Request) string {
	host, scheme := strings.ToLower(r.Host), "http://"
	if f.config.PublicURL != "" {
		return f.config.PublicURL
	}
	if !hostPattern.MatchString(host) {
		host = "localhost"
	}
	if f.Secure(r.Request) {
		scheme = "https://"
	}
	return scheme + host
}

// NotFoundHandler returns a handler for the 404 page. It redirects a few known paths with a final slash.
func (f *Frame) NotFoundHandler() http.Handler {
	return f.limited(func(w http.ResponseWriter, r *Request) {
		switch r.URL.Path {
		case "/en/", "/docs/", "/en/docs/", "/institutions/", "/en/institutions/", "/account/", "/en/account/":
			w.Header().Set("Location", strings.TrimSuffix(r.URL.Path, "/"))
			w.WriteHeader(http.StatusFound)
			return
		}
		f.NotFound(w, r)
	})
}

// limited returns an http.Handler that limits the requests of a client address and sets the security headers.
func (f *Frame) limited(handler Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, httpReq *http.Request) {
		r := f.request(httpReq)
		setSecurityHeaders(w.Header())
		if f.Secure(httpReq) {
			w.Header().Set("Strict-Transport-Security", hstsPolicy)
		}
		if wait, ok := f.limiter.admit(r.Address, r.Now); !ok {
			w.Header().Set("Retry-After", fields.RetryAfter(wait))
			f.writeError(w, r, http.StatusTooManyRequests)
			return
		}
		handler(w, r)
	})
}

// Admit counts a request against the page limit of the client. If the client is at the limit, Admit returns how long
// the client must wait, and false.
func (f *Frame) Admit(httpReq *http.Request) (wait time.Duration, ok bool) {
	r := f.request(httpReq)
	return f.limiter.admit(r.Address, r.Now)
}

func (f *Frame) request(httpReq *http.Request) *Request {
	r := &Request{Request: httpReq, ID: httpReq.Header.Get("X-Request-Id"), Now: f.config.Clock()}
	r.Language, r.Page = splitPath(httpReq.URL.EscapedPath())
	if addrPort, err := netip.ParseAddrPort(httpReq.RemoteAddr); err == nil {
		r.Address = addrPort.Addr()
	}
	return r
}

func setSecurityHeaders(header http.Header) {
	header.Set("Content-Security-Policy", Policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "strict-origin-when-cross-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
}

// NotFound sends the 404 page.
func (f *Frame) NotFound(w http.ResponseWriter, r *Request) { f.writeError(w, r, http.StatusNotFound) }

// BadRequest sends the 400 page. It is for requests that the site's own forms cannot send.
func (f *Frame) BadRequest(w http.ResponseWriter, r *Request) {
	f.writeError(w, r, http.StatusBadRequest)
}

// StatusOf returns the HTTP status for an error, and how long the client should wait before the next try; 0 means that
// waiting does not help. Errors without a status of their own get 500.
func StatusOf(err error) (status int, wait time.Duration) {
	var apiErr *engine.Error
	if errors.As(err, &apiErr) {
		wait = max(apiErr.RetryAfter, time.Second)
	}
	switch code := engine.CodeOf(err); code {
	case engine.CodeInvalidCode, engine.CodeInvalidParameters:
		return http.StatusUnprocessableEntity, 0
	case engine.CodeInvalidSession, engine.CodeAccountSuspended:
		return http.StatusForbidden, 0
	default:
		status, _ = encode.Status(code)
	}
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return status, wait
	case http.StatusNotFound, http.StatusConflict:
		return status, 0
	}
	return http.StatusInternalServerError, 0
}

// Fail sends the error page for an error: 404, 429 or 503; 500 for all other errors. A 500 is logged with the request
// id.
func (f *Frame) Fail(w http.ResponseWriter, r *Request, err error) {
	status, wait := StatusOf(err)
	switch status {
	case http.StatusNotFound:
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", fields.RetryAfter(wait))
	default:
		status = http.StatusInternalServerError
		f.config.Logger.Error("a page could not be answered", "requestId", r.ID, "page", r.Page, "cause", err)
	}
	if isUnavailable(err) {
		f.writeErrorText(w, r, status, emptyKey)
		return
	}
	f.writeError(w, r, status)
}

// writeError sends the error page for a status. Error pages are cached, except the page for 500, which shows the
// request id.
func (f *Frame) writeError(w http.ResponseWriter, r *Request, status int) {
	f.writeErrorText(w, r, status, "error."+strconv.Itoa(status))
}

// writeErrorText is writeError with the key of the texts.
func (f *Frame) writeErrorText(w http.ResponseWriter, r *Request, status int, key string) {
	home := *r
	home.Page = "/" // the link to the other language leads to its home page
	render := func() (*renderedPage, time.Time, error) {
		page, err := f.render(&home, f.errorPage(r, status, key))
		if key == emptyKey { // the page changes when a source is read
			return page, r.Now.Add(time.Second), err
		}
		return page, r.Now.Add(errorPageCacheDuration), err
	}
	var page *renderedPage
	var err error
	if status == http.StatusInternalServerError {
		page, _, err = render()
	} else {
		page, err = f.cached(r, cacheKey{r.Language, "", key + strconv.FormatBool(r.Page == "/")}, render)
	}
	if err != nil {
		f.config.Logger.Error("the page of an error could not be made", "requestId", r.ID, "cause", err)
		w.WriteHeader(status)
		return
	}
	setPageHeaders(w.Header(), r, page, noStore)
	page.body.Send(w, r.Request, page.status)
}

// hstsPolicy makes a browser use https for this host for half a year.
const hstsPolicy = "max-age=15552000"

const (
	errorPageCacheDuration = time.Hour
	emptyKey               = "error.empty" // key of the texts of a node without rates
)

func (f *Frame) errorPage(r *Request, status int, key string) *Document {
	l := f.texts.In(r)
	return &Document{Title: l.Str(key + ".title"), Status: status, NoIndex: true, Body: Group{
		H1(l.T(key + ".title")), P(Class("lead"), l.T(key+".text")), If(key == emptyKey, f.collection(l)),
		If(status == http.StatusInternalServerError && r.ID != "", P(Class("fine"), l.T("error.id"), Text(" "), Code(Text(r.ID)),
			f.Contact(". "+l.Str("error.contact")))),
		If(r.Page != "/", P(A(Class("button"), l.Href("/"), l.T("error.back")))), // the home page has no link to itself
	}}
}

// collection shows the result of Config.Collection. It returns nil if the node reads no sources.
func (f *Frame) collection(l *Localizer) Node {
	if f.config.Collection == nil {
		return nil
	}
	next, failed := f.config.Collection()
	if next.IsZero() {
		return nil
	}
	when := l.Str("error.empty.today", l.Clock(next))
	if day := engine.DateOf(next); day != engine.DateOf(l.now) {
		when = l.Str("error.empty.later", l.ShortDate(day), l.Clock(next))
	}
	if len(failed) == 0 {
		return P(l.T("error.empty.first"), Text(" "+when))
	}
	return Group{P(Text(when)), P(l.T("error.empty.failed")), Ul(Map(failed, func(id string) Node { return Li(Text(f.config.Catalogue.Source(id).Name)) }))}
}

// Limits of a client's requests, by address or IPv6 /64 prefix. They are independent of the API's limits.
const (
	// PerMinuteDefault is the default limit of requests per minute, including requests for assets.
	PerMinuteDefault  = 240
	limitBurst        = 120     // maximum number of requests at once
	limitAddressesMax = 1 << 14 // maximum number of stored addresses
)

// limiter limits requests with a token bucket for each client. Above limitAddressesMax, the cache drops the least
// recently used buckets.
type limiter struct {
	refill time.Duration // time until the bucket has one more token
	burst  int64         // tokens in a full bucket

	mu     sync.Mutex
	fullAt *rendered.Cache[netip.Prefix, *int64] // when the bucket will be full: Unix time in nanoseconds
}

func newLimiter(perMinute int) *limiter {
	return &limiter{
		refill: time.Minute / time.Duration(perMinute), burst: int64(min(limitBurst, perMinute)),
		fullAt: rendered.NewCache[netip.Prefix, *int64](limitAddressesMax, 0),
	}
}

// admit takes a token from the bucket of an address. If the bucket is empty, admit returns the time until the next
// token, and false.
func (l *limiter) admit(addr netip.Addr, now time.Time) (time.Duration, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fullAt, _ := l.fullAt.Get(account.ClientPrefix(addr), now, func(last *int64) (rendered.Kept[*int64], error) { // never returns an error
		return rendered.Kept[*int64]{Value: cmp.Or(last, new(int64)), Until: now.Add(time.Hour)}, nil
	})
	nowNano := now.UnixNano()
	newFullAt := max(*fullAt, nowNano) + int64(l.refill)
	if wait := newFullAt - nowNano - l.burst*int64(l.refill); wait > 0 {
		return time.Duration(wait), false
	}
	*fullAt = newFullAt
	return 0, true
}
