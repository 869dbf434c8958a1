package pages

import (
	"errors"
	"net/http"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/tasard/tasard/engine"
)

// errBusy is the error of a page that is not cached while too many are rendered.
var errBusy = &engine.Error{Code: engine.CodeOverloaded, Message: "too many pages are asked for", RetryAfter: time.Second}

// Request is a request for a page.
type Request struct {
	*http.Request
	Language Language
	Page     string     // Spanish path, still escaped: /docs for /en/docs
	Address  netip.Addr // address of the client
	ID       string     // X-Request-Id of the answer
	Now      time.Time
}

// suggestsOther reports whether to link to the other language at the top: on a Spanish page for a browser that prefers
// English.
func (r *Request) suggestsOther() bool {
	return r.Language == Spanish && prefersEnglish(r.Header.Get("Accept-Language"))
}

// Handler serves a page, usually with Write, WriteCached, NotFound or Fail.
type Handler func(w http.ResponseWriter, r *Request)

// Handle serves a page in both languages, such as /docs and /en/docs. The path may have wildcards of http.ServeMux,
// and must not end with a slash.
func (f *Frame) Handle(mux *http.ServeMux, method, path string, handler Handler) {
	for _, language := range Languages() {
		at := language.Path(path)
		if at == "/" {
			at = "/{$}"
		}
		f.handle(mux, method, at, handler)
	}
}

// handle serves one path.
func (f *Frame) handle(mux *http.ServeMux, method, path string, handler Handler) {
	mux.Handle(method+" "+path, f.limited(handler))
}

// PublicURL is that of Config.
func (f *Frame) PublicURL() string { return f.config.PublicURL }

// Secure reports whether the site is reached over https.
func (f *Frame) Secure() bool { return f.config.Secure }

// hostPattern matches hosts with or without a port, without characters that mean something in a shell or program.
var hostPattern = regexp.MustCompile(`^(\[[0-9A-Fa-f:.]{2,45}\]|[0-9A-Za-z.-]{1,253})(:[0-9]{1,5})?$`)

// ServiceURL returns the origin of the site for text to be copied: PublicURL, or the host of the request.
func (f *Frame) ServiceURL(r *Request) string {
	host, scheme := strings.ToLower(r.Host), "http://"
	if f.config.PublicURL != "" {
		return f.config.PublicURL
	}
	if !hostPattern.MatchString(host) {
		host = "localhost"
	}
	if f.config.Secure {
		scheme = "https://"
	}
	return scheme + host
}

// NotFoundHandler serves the 404 page.
func (f *Frame) NotFoundHandler() http.Handler { return f.limited(f.NotFound) }

// limited enforces the limit of the client address and sets the security headers.
func (f *Frame) limited(handler Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		r := f.request(hr)
		setSecurityHeaders(w.Header())
		if wait, ok := f.limiter.admit(r.Address, r.Now); !ok {
			w.Header().Set("Retry-After", RetryAfter(wait))
			f.writeError(w, r, http.StatusTooManyRequests)
			return
		}
		handler(w, r)
	})
}

func (f *Frame) request(hr *http.Request) *Request {
	r := &Request{Request: hr, ID: hr.Header.Get("X-Request-Id"), Now: f.config.Clock()}
	r.Language, r.Page = splitPath(hr.URL.EscapedPath())
	if from, err := netip.ParseAddrPort(hr.RemoteAddr); err == nil {
		r.Address = from.Addr()
	}
	return r
}

// setSecurityHeaders sets the headers of pages and assets.
func setSecurityHeaders(header http.Header) {
	header.Set("Content-Security-Policy", Policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "strict-origin-when-cross-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
}

// NotFound serves the 404 page.
func (f *Frame) NotFound(w http.ResponseWriter, r *Request) { f.writeError(w, r, http.StatusNotFound) }

// BadRequest serves the 400 page, for requests that no form of the site sends.
func (f *Frame) BadRequest(w http.ResponseWriter, r *Request) {
	f.writeError(w, r, http.StatusBadRequest)
}

// Fail serves the page of an error: an engine.Error by its code, any other as 500. The cause is logged with the
// request id.
func (f *Frame) Fail(w http.ResponseWriter, r *Request, err error) {
	status := http.StatusInternalServerError
	var named *engine.Error
	if errors.As(err, &named) {
		switch named.Code {
		case engine.CodeNotFound, engine.CodeInstitutionNotFound:
			status = http.StatusNotFound
		case engine.CodeDataUnavailable, engine.CodeOverloaded, engine.CodeReadOnly:
			status = http.StatusServiceUnavailable
			w.Header().Set("Retry-After", RetryAfter(named.RetryAfter))
		case engine.CodeRateLimited, engine.CodeQuotaExceeded, engine.CodeRequestedTooSoon:
			status = http.StatusTooManyRequests
			w.Header().Set("Retry-After", RetryAfter(named.RetryAfter))
		}
	}
	if status == http.StatusInternalServerError {
		f.config.Logger.Error("a page could not be answered", "requestId", r.ID, "page", r.Page, "cause", err)
	}
	f.writeError(w, r, status)
}

// writeError serves the page of a status. All but 500, which shows the request id, are cached.
func (f *Frame) writeError(w http.ResponseWriter, r *Request, status int) {
	plain := *r
	plain.Page = "/" // the page links to the home page in the other language
	render := func() (*rendered, time.Time, error) {
		page, err := f.render(&plain, f.errorPage(r, status))
		return page, r.Now.Add(errorPageCachedFor), err
	}
	var page *rendered
	var err error
	if status == http.StatusInternalServerError {
		page, _, err = render()
	} else {
		page, err = f.cache.getOrRender(cacheKey{r.Language, r.suggestsOther(), "", strconv.Itoa(status)}, r.Now, render)
	}
	if err != nil {
		f.config.Logger.Error("the page of an error could not be made", "requestId", r.ID, "cause", err)
		w.WriteHeader(status)
		return
	}
	w.Header().Del("ETag")
	w.Header().Set("Cache-Control", "no-store")
	f.sendPage(w, r, page)
}

const errorPageCachedFor = time.Hour

// errorPage is the page of a status.
func (f *Frame) errorPage(r *Request, status int) *Document {
	l, key := f.texts.In(r), "error."+strconv.Itoa(status)
	return &Document{Title: l.Str(key + ".title"), Status: status, NoIndex: true, Body: Group{
		H1(l.T(key + ".title")), P(Class("lead"), l.T(key+".text")),
		If(status == http.StatusInternalServerError && r.ID != "", P(Class("fine"), l.T("error.id"), Text(" "), Code(Text(r.ID)),
			f.Contact(". "+l.Str("error.contact")))),
		P(A(Class("button"), l.Href("/"), l.T("error.back"))),
	}}
}
