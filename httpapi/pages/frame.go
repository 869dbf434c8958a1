package pages

import (
	"embed"
	"io/fs"
	"net/http"
	"net/url"
	"time"

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
