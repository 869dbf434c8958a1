package pages

import (
	"embed"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/tasard/tasard/httpapi/internal/fields"
)

//go:embed assets
var assetFiles embed.FS

// Policy is the Content-Security-Policy of a document that names none: everything comes from this service, nothing is inline.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

const rendersPerSecondMax = 100 // of all pages: a tenth of one processor

// Frame is what all pages have in common: layout, languages, assets, limits, and what was rendered already. Safe for concurrent use
// once every asset is added.
type Frame struct {
	config     Config
	texts      *Texts
	assets     map[string]asset  // by hashed name
	assetPaths map[string]string // by plain name
	limiter    *limiter
	renders    renderLimiter
	cache      *pageCache
}

func newFrame(config Config) *Frame {
	f := &Frame{
		config: config, texts: ReadTexts(sub(frameFiles, "frame")), assets: map[string]asset{}, assetPaths: map[string]string{},
		limiter: newLimiter(config.PerMinute), cache: newPageCache(),
	}
	f.AddAssets(assetFiles, "assets/style.css", "assets/favicon.svg", "assets/convert.js", "assets/copy.js")
	return f
}

// sub is a folder of embedded files, which is there.
func sub(files fs.FS, folder string) fs.FS {
	inner, err := fs.Sub(files, folder)
	if err != nil {
		panic("pages: no embedded folder " + folder + ": " + err.Error())
	}
	return inner
}

func (f *Frame) register(mux *http.ServeMux) {
	f.handle(mux, http.MethodGet, assetsPath+"{name}", f.serveAsset)
}

// rendered is a page as it goes out. It is immutable.
type rendered struct {
	status int
	policy string
	etag   string
	body   []byte
}

// Write renders a document and answers it, never to be stored: for what is made for one visitor alone.
func (f *Frame) Write(w http.ResponseWriter, r *Request, doc *Document) {
	page, err := f.render(r, doc)
	if err != nil {
		f.Fail(w, r, err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	f.sendPage(w, r, page)
}

// WriteCached answers a page that is the same for everybody who asks for it in this language, with this query, which the caller has
// normalised: it must not have more forms than a client may fairly ask for. The page is made when it was not asked for within the second,
// or until Document.Until if that is later. Addresses and cookies must not go into it.
func (f *Frame) WriteCached(w http.ResponseWriter, r *Request, query string, make func() (*Document, error)) {
	key := cacheKey{r.Language, r.suggestsOther(), r.Page, query}
	page, err := f.cache.getOrRender(key, r.Now, func() (*rendered, time.Time, error) {
		if !f.renders.allow(r.Now, rendersPerSecondMax) {
			return nil, time.Time{}, errBusy
		}
		doc, err := make()
		if err != nil {
			return nil, time.Time{}, err
		}
		page, err := f.render(r, doc)
		if second := r.Now.Truncate(time.Second).Add(time.Second); doc.Until.Before(second) {
			return page, second, err
		}
		return page, doc.Until, err
	})
	if err != nil {
		f.Fail(w, r, err)
		return
	}
	header := w.Header()
	header.Set("Cache-Control", "no-cache") // kept, but asked for again with the tag
	header.Set("ETag", page.etag)
	header.Add("Vary", "Accept-Language")
	f.sendPage(w, r, page)
}

// sendPage answers what was rendered; 304 to somebody who has it.
func (f *Frame) sendPage(w http.ResponseWriter, r *Request, page *rendered) {
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Language", string(r.Language))
	header.Set("Content-Security-Policy", page.policy)
	tag, lines := header.Get("ETag"), fields.Lines(r.Header.Values("If-None-Match"))
	if tag != "" && page.status == http.StatusOK && fields.IfNoneMatchHits(lines, []byte(tag)) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.WriteHeader(page.status)
	f.send(w, r, page.body)
}

// send writes a body. A client that went away is no error of ours.
func (f *Frame) send(w http.ResponseWriter, r *Request, body []byte) {
	if _, err := w.Write(body); err != nil {
		f.config.Logger.Debug("a page could not be sent", "path", r.URL.Path, "cause", err)
	}
}

// RetryAfter is a waiting time for Retry-After: whole seconds, rounded up, at least one.
func RetryAfter(wait time.Duration) string {
	return strconv.FormatInt(max(1, int64((wait+time.Second-1)/time.Second)), 10)
}

// pathWith is the address of a page with a query.
func pathWith(page string, query url.Values) string {
	if encoded := query.Encode(); encoded != "" {
		return page + "?" + encoded
	}
	return page
}
