package pages

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/netip"
	"net/url"
	"path"
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

//go:embed assets
var assetFiles embed.FS

// Policy is the default Content-Security-Policy. It allows only scripts, styles and images from files of this site.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"manifest-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// Frame is the common part of all pages: layout, languages, assets, limits and the cache. After the last AddAssets it
// is safe for concurrent use.
type Frame struct {
	config     Config
	texts      *Texts
	assets     map[string]asset  // by file name with the hash in it
	assetPaths map[string]string // URL path of each asset, by file name without the hash
	limiter    *limiter
	cache      *rendered.Cache[cacheKey, *renderedPage]
}

func newFrame(config Config) *Frame {
	f := &Frame{
		config: config, texts: ReadTexts(Folder(frameFiles, "frame")), assets: map[string]asset{}, assetPaths: map[string]string{},
		limiter: newLimiter(config.PerMinute), cache: rendered.NewCache[cacheKey, *renderedPage](cachedPagesMax, cachedBytesMax),
	}
	f.AddAssets(assetFiles, "assets/style.css", "assets/favicon.svg", "assets/convert.js", "assets/copy.js")
	return f
}

// Folder returns a folder of embedded files. It panics if there is no such folder.
func Folder(files fs.FS, folder string) fs.FS {
	subFS, err := fs.Sub(files, folder)
	if err != nil {
		panic("pages: no embedded folder " + folder + ": " + err.Error())
	}
	return subFS
}

// renderedPage is a page ready to be sent. It is immutable.
type renderedPage struct {
	status int
	policy string
	body   *rendered.Body
}

// Limits of the page cache, and values of Cache-Control.
const (
	cachedPagesMax = 512
	cachedBytesMax = 16 << 20 // without compression
	noStore        = "no-store"
	revalidate     = "no-cache" // with the ETag
)

// cacheKey identifies a cached page.
type cacheKey struct {
	language Language
	page     string
	query    string // normalized URL query
}

// Write renders and sends a page for one visitor. The page is not cached.
func (f *Frame) Write(w http.ResponseWriter, r *Request, doc *Document) {
	page, err := f.render(r, doc)
	if err != nil {
		f.Fail(w, r, err)
		return
	}
	setPageHeaders(w.Header(), r, page, noStore)
	w.WriteHeader(page.status)
	_, _ = w.Write(page.body.Plain()) // httpapi keeps it until it is sent
}

// WriteCached sends a page that is the same for all visitors with the same language and query. If the page is not
// cached, WriteCached calls build, and caches the result for the rest of the current second, or until Document.Until if
// that is later. The caller must normalize the query, so that clients can't fill the cache with variants of one page.
func (f *Frame) WriteCached(w http.ResponseWriter, r *Request, query string, build func() (*Document, error)) {
	page, err := f.cached(r, cacheKey{r.Language, r.Page, query}, func() (*renderedPage, time.Time, error) {
		doc, err := build()
		if err != nil {
			return nil, time.Time{}, err
		}
		page, err := f.render(r, doc)
		if secondEnd := r.Now.Truncate(time.Second).Add(time.Second); doc.Until.Before(secondEnd) {
			return page, secondEnd, err
		}
		return page, doc.Until, err
	})
	if err != nil {
		f.Fail(w, r, err)
		return
	}
	setPageHeaders(w.Header(), r, page, revalidate)
	page.body.Send(w, r.Request, page.status)
}

// cached returns the cached page for a key. If the page is missing or expired, cached calls render, which returns a new
// page and its expiry.
func (f *Frame) cached(r *Request, key cacheKey, render func() (*renderedPage, time.Time, error)) (*renderedPage, error) {
	return f.cache.Get(key, r.Now, func(*renderedPage) (kept rendered.Kept[*renderedPage], err error) {
		if kept.Value, kept.Until, err = render(); err == nil {
			kept.Bytes = len(kept.Value.body.Plain())
		}
		return kept, err
	})
}

func setPageHeaders(header http.Header, r *Request, page *renderedPage, caching string) {
	header.Set("Cache-Control", caching)
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Language", string(r.Language))
	header.Set("Content-Security-Policy", page.policy)
}

func pathWith(page string, query url.Values) string { return withQuery(page, query.Encode()) }

func withQuery(page, query string) string {
	if query == "" {
		return page
	}
	return page + "?" + query
}

// Document is the content of a page.
type Document struct {
	Body        Node      // begins with the only h1
	Title       string    // title of the browser tab
	Description string    // description for search engines; "" means none
	Status      int       // 0 means 200
	Query       string    // URL query of the link to the other language
	Section     string    // the page's menu entry: "/", "/institutions", "/docs", "/account" or "/terms"
	NoIndex     bool      // search engines must not index the page
	Scripts     []string  // names of assets, see Frame.AddAssets
	Styles      []string  // names of assets, see Frame.AddAssets
	Policy      string    // Content-Security-Policy; "" means the constant Policy
	Until       time.Time // expiry in WriteCached's cache
	Address     string    // URL query of the page for search engines and previews; "" means none
	Picture     string    // path of the Spanish picture for previews; "" means none
	Feed        string    // path of a feed of the page; "" means none
}

// render returns the HTML of a document in the layout.
func (f *Frame) render(r *Request, doc *Document) (*renderedPage, error) {
	var text bytes.Buffer
	l := f.texts.In(r)
	page := HTML(Lang(string(r.Language)), f.head(l, r, doc), Body(
		A(Class("skip"), Href("#content"), l.T("frame.skip")),
		If(f.config.Demo, P(Class("demo"), Role("note"), l.T("frame.demo"))),
		f.header(l, r, doc),
		Main(ID("content"), Class("wide"), doc.Body),
		Footer(Class("bottom"), Div(Class("wide"),
			P(l.T("frame.footer.notice")),
			P(l.T("frame.footer.attribution"), Text(" "), A(l.Href("/terms"), l.T("nav.terms"))),
			If(f.config.Contact != "", P(f.Contact(l.Str("frame.contact")))),
			P(Class("tagline"), Strong(l.T("frame.name")), Text(" · "), l.T("frame.tagline")),
		)),
	))
	if err := Doctype(page).Render(&text); err != nil {
		return nil, fmt.Errorf("render %s: %w", r.Page, err)
	}
	return &renderedPage{cmp.Or(doc.Status, http.StatusOK), cmp.Or(doc.Policy, Policy), rendered.Undated(text.Bytes())}, nil
}

func (f *Frame) head(l *Localizer, r *Request, doc *Document) Node {
	urlOf := func(language Language) string {
		return f.config.PublicURL + withQuery(language.Path(r.Page), doc.Address)
	}
	alternate := func(name string, language Language) Node {
		return Link(Rel("alternate"), Attr("hreflang", name), Href(urlOf(language)))
	}
	links := Group{Link(Rel("canonical"), Href(urlOf(r.Language)))}
	for _, language := range Languages() {
		links = append(links, alternate(string(language), language))
	}
	links = append(links, alternate("x-default", Spanish))
	if doc.NoIndex {
		links = Group{Meta(Name("robots"), Content("noindex"))}
	}
	return Head(
		Meta(Charset("utf-8")),
		Meta(Name("viewport"), Content("width=device-width, initial-scale=1")),
		TitleEl(Text(doc.Title+" · "), l.T("frame.name")),
		If(doc.Description != "", Meta(Name("description"), Content(doc.Description))),
		Meta(Name("color-scheme"), Content("light dark")),
		links,
		f.preview(l, r, doc),
		If(doc.Feed != "", Link(Rel("alternate"), Type("application/atom+xml"), Title(l.Str("frame.feed")), Href(doc.Feed))),
		Link(Rel("icon"), Href(f.Asset("favicon.svg")), Type("image/svg+xml")),
		Link(Rel("manifest"), Href(manifestPath)),
		Map(append([]string{"style.css"}, doc.Styles...), func(name string) Node { return Link(Rel("stylesheet"), Href(f.Asset(name))) }),
		Map(doc.Scripts, func(name string) Node { return Script(Src(f.Asset(name)), Defer()) }),
	)
}

func (f *Frame) header(l *Localizer, r *Request, doc *Document) Node {
	entry := func(page, key string) Node {
		return A(l.Href(page), If(page == doc.Section, Aria("current", "page")), l.T(key))
	}
	return Header(Class("top"), Div(Class("wide"),
		A(Class("brand"), l.Href("/"), Raw(`<svg viewBox="0 0 32 32" width="28" height="28" aria-hidden="true">`+
			`<rect class="mark" width="32" height="32" rx="8"/><path class="line" d="M6 21l6-6 5 4 9-10"/></svg>`), l.T("frame.name")),
		Nav(Aria("label", l.Str("frame.menu")),
			entry("/", "nav.home"), entry("/institutions", "nav.institutions"), entry("/docs", "nav.docs"), entry("/account", "nav.account")),
		A(Href(withQuery(r.Language.Other().Path(r.Page), doc.Query)), Attr("hreflang", string(r.Language.Other())), Class("other"),
			Lang(string(r.Language.Other())), l.T("frame.other")),
	))
}

const (
	assetsPath     = "/assets/"
	assetHashBytes = 8
)

// asset is a static file. The URL contains a hash of the content, so browsers may cache the file forever.
type asset struct {
	contentType string
	body        func() *rendered.Body
}

// AddAssets serves files under /assets/ with a hash in the name: style.css becomes style.<hash>.css. A file with the
// suffix .gz is decompressed and served without the suffix. Call AddAssets before the first request. It panics if a
// file is missing, and if two assets have the same name.
func (f *Frame) AddAssets(files fs.FS, names ...string) {
	contentTypes := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
	for _, file := range names {
		content, err := fs.ReadFile(files, file)
		if err != nil {
			panic("pages: read the embedded asset: " + err.Error())
		}
		name, isGzip := strings.CutSuffix(path.Base(file), ".gz")
		if _, exists := f.assetPaths[name]; exists {
			panic("pages: two assets have the name " + name)
		}
		digest := sha256.Sum256(content)
		stem, extension, _ := strings.Cut(name, ".")
		hashed := stem + "." + hex.EncodeToString(digest[:assetHashBytes]) + "." + extension
		f.assetPaths[name] = assetsPath + hashed
		f.assets[hashed] = asset{contentTypes[path.Ext(name)], sync.OnceValue(func() *rendered.Body {
			if isGzip {
				return rendered.Undated(gunzip(content))
			}
			return rendered.Undated(content)
		})}
	}
}

// Asset returns the URL path of an added asset. It panics for an unknown name.
func (f *Frame) Asset(name string) string {
	path, ok := f.assetPaths[name]
	if !ok {
		panic("pages: no asset has the name " + name + "; add it with AddAssets")
	}
	return path
}

func (f *Frame) serveAsset(w http.ResponseWriter, r *Request) {
	a, ok := f.assets[r.PathValue("name")]
	if !ok {
		f.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", a.contentType)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	a.body().Send(w, r.Request, http.StatusOK)
}

// gunzip decompresses an embedded file. It panics if the file is not compressed with gzip.
func gunzip(compressed []byte) []byte {
	var plain []byte
	reader, err := gzip.NewReader(bytes.NewReader(compressed))
	if err == nil {
		plain, err = io.ReadAll(reader)
	}
	if err != nil {
		panic("pages: unpack an asset: " + err.Error())
	}
	return plain
}

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

const (
	errorPageCacheDuration = time.Hour
	emptyKey               = "error.empty"      // key of the texts of a node without rates
	hstsPolicy             = "max-age=15552000" // makes a browser use https for this host for half a year
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
