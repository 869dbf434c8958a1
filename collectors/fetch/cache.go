package fetch

import (
	"bytes"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tasard/tasard/collectors/source"
)

// Limits of documentCache.
const (
	cachedBytesMax    = 1 << 20  // of one document
	cacheBytesMax     = 32 << 20 // of all documents; a document that does not fit empties the cache
	validatorBytesMax = 1 << 10
	cacheAgeMax       = 24 * time.Hour // a server may wrongly send 304 (not modified) for ever, which freezes rates
)

type pageKey struct {
	id   string // of the source definition
	page int    // index in Definition.Pages
}

// cachedDocument is a document with its validators, which are its ETag and Last-Modified. It is immutable.
type cachedDocument struct {
	definition         *source.Definition // a reload makes another Definition, which must not use this document
	url                string
	etag, lastModified string
	contentType        string
	body               []byte
	receivedAt         time.Time
}

// documentCache keeps documents for conditional requests, which a server may answer with 304 (not modified). It has the
// newest document of each page, if it has validators.
type documentCache struct {
	mu        sync.Mutex
	documents map[pageKey]*cachedDocument
	bytes     int
}

// get returns the cached document of a page. It returns nil if there is none, if it is too old, or if it was fetched
// with another definition of the source.
func (c *documentCache) get(key pageKey, d *source.Definition, now time.Time) *cachedDocument {
	c.mu.Lock()
	defer c.mu.Unlock()
	cached := c.documents[key]
	if cached == nil || cached.definition != d || now.Sub(cached.receivedAt) >= cacheAgeMax || now.Before(cached.receivedAt) {
		return nil
	}
	return cached
}

// put replaces the cached document of a page by a response. If the response may not be cached, the page has no cached
// document afterwards.
func (c *documentCache) put(key pageKey, d *source.Definition, resp *rawResponse) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.documents[key]; old != nil {
		c.bytes -= len(old.body)
		delete(c.documents, key)
	}
	etag, lastModified := validator(resp.header, "Etag"), validator(resp.header, "Last-Modified")
	noStore := strings.Contains(strings.ToLower(resp.header.Get("Cache-Control")), "no-store")
	if resp.method != http.MethodGet || noStore || len(resp.body) > cachedBytesMax || etag == "" && lastModified == "" {
		return
	}
	if c.documents == nil || c.bytes+len(resp.body) > cacheBytesMax {
		c.documents, c.bytes = map[pageKey]*cachedDocument{}, 0
	}
	c.documents[key] = &cachedDocument{
		definition: d, url: resp.url.String(), etag: etag, lastModified: lastModified,
		contentType: resp.header.Get("Content-Type"), body: bytes.Clone(resp.body), receivedAt: resp.receivedAt,
	}
	c.bytes += len(resp.body)
}

// validator returns the header with a name, or "" if it is missing or too long.
func validator(header http.Header, name string) string {
	if text := header.Get(name); len(text) <= validatorBytesMax {
		return text
	}
	return ""
}

// setValidators makes the request with this header conditional.
func (d *cachedDocument) setValidators(header http.Header) {
	if d.etag != "" {
		header.Set("If-None-Match", d.etag)
	}
	if d.lastModified != "" {
		header.Set("If-Modified-Since", d.lastModified)
	}
}

// response turns a response with status 304 into one with status 200 and the cached body.
func (d *cachedDocument) response(notModified *rawResponse) *rawResponse {
	resp := *notModified
	resp.status, resp.body = http.StatusOK, bytes.Clone(d.body)
	resp.header = http.Header{"Content-Type": {d.contentType}}
	return &resp
}
