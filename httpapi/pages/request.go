package pages

import (
	"errors"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/tasard/tasard/engine"
)

// errBusy is for a page that nobody asked for lately, while too many others are made.
var errBusy = &engine.Error{Code: engine.CodeOverloaded, Message: "too many pages are asked for", RetryAfter: time.Second}

// Request is what a page is asked with.
type Request struct {
	*http.Request
	Language Language
	Page     string     // the path of the Spanish page: /docs for /en/docs. As it was sent, escapes and all
	Address  netip.Addr // the client's, as limits see it
	ID       string     // that of the answer's X-Request-Id
	Now      time.Time
}

// suggestsOther tells whether the visitor would rather read the other language: only a plain path asks, /en is a choice.
func (r *Request) suggestsOther() bool {
	return r.Language == Spanish && prefersEnglish(r.Header.Get("Accept-Language"))
}

// Handler answers a request, usually by Write, WriteCached, NotFound or Fail of the frame.
type Handler func(w http.ResponseWriter, r *Request)

// Handle serves a page, named by its Spanish path, in both languages: /docs and /en/docs. The path may have wildcards, as
// http.ServeMux has them, and no slash at its end. The address's limit is kept before the handler is called, and the headers that
// protect are set. (Link to the contract and its documentation is the site's, for everything that it serves.)
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

// NotFoundHandler answers every request with the page of 404.
func (f *Frame) NotFoundHandler() http.Handler { return f.limited(f.NotFound) }

// limited sets the security headers and keeps the limit of the client's address before it calls a handler.
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

// setSecurityHeaders sets the headers of all pages and assets.
func setSecurityHeaders(header http.Header) {
	header.Set("Content-Security-Policy", Policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "strict-origin-when-cross-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
}

// NotFound answers 404 as a page.
func (f *Frame) NotFound(w http.ResponseWriter, r *Request) { f.writeError(w, r, http.StatusNotFound) }

// BadRequest answers 400 as a page, for a request that no form of ours sends. What a visitor typed wrong belongs beside its field.
func (f *Frame) BadRequest(w http.ResponseWriter, r *Request) {
	f.writeError(w, r, http.StatusBadRequest)
}

// Fail answers an error as a page: the engine's by their codes, everything else with 500. Causes go to the log, under the request's id.
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

// markInvalid answers an error's page, with the request's id where it helps: 500. The page of any other refusal is the same for every visitor
// and kept, so that refusing costs little.
func (f *Frame) writeError(w http.ResponseWriter, r *Request, status int) {
	plain := *r
	plain.Page = "/" // what the links of the page lead to: where it was asked for there is nothing
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

// errorPage is the page of an error.
func (f *Frame) errorPage(r *Request, status int) *Document {
	l, key := f.texts.In(r), "error."+strconv.Itoa(status)
	return &Document{Title: l.Str(key + ".title"), Status: status, NoIndex: true, Body: Group{
		H1(l.T(key + ".title")), P(Class("lead"), l.T(key+".text")),
		If(status == http.StatusInternalServerError && r.ID != "", P(Class("fine"), l.T("error.id"), Text(" "), Code(Text(r.ID)),
			f.Contact(". "+l.Str("error.contact")))),
		P(A(Class("button"), l.Href("/"), l.T("error.back"))),
	}}
}
