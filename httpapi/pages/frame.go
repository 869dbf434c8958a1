package pages

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

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

func (f *Frame) register(mux *http.ServeMux) {
	f.handle(mux, http.MethodGet, assetsPath+"{name}", f.serveAsset)
}

// renderedPage is a page ready to be sent. It is immutable.
type renderedPage struct {
	status int
	policy string
	body   *rendered.Body
}

// Limits of the page cache.
const (
	cachedPagesMax = 512
	cachedBytesMax = 16 << 20 // without compression
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

// Values of Cache-Control.
const (
	noStore    = "no-store"
	revalidate = "no-cache" // with the ETag
)

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
	reader, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		panic("pages: unpack an asset: " + err.Error())
	}
	plain, err := io.ReadAll(reader)
	if err != nil {
		panic("pages: unpack an asset: " + err.Error())
	}
	return plain
}
