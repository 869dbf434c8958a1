package fetch

import (
	"bytes"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tasard/tasard/collectors/source"
)

// Limits of the cache of documents for conditional requests.
const (
	cachedBytesMax    = 1 << 20  // of one document
	cacheBytesMax     = 32 << 20 // of all documents; when they do not fit, all are dropped
	validatorBytesMax = 1 << 10
	cacheAgeMax       = 24 * time.Hour // a server whose validators never change can't freeze a rate for longer
)

// pageKey names one page of one source.
type pageKey struct {
	id   string
	page int
}

// cachedDocument is a document with its validators. It is immutable.
type cachedDocument struct {
	definition         *source.Definition // a new definition under the same id does not use the entry
	url                string
	etag, lastModified string
	contentType        string
	body               []byte
	receivedAt         time.Time
}

// documentCache keeps the last document of each page that has validators.
type documentCache struct {
	mu        sync.Mutex
	documents map[pageKey]*cachedDocument
	bytes     int
}

// get returns the document of a page, nil if there is none that may be used now.
func (m *documentCache) get(key pageKey, d *source.Definition, now time.Time) *cachedDocument {
	m.mu.Lock()
	defer m.mu.Unlock()
	cached := m.documents[key]
	if cached == nil || cached.definition != d || now.Sub(cached.receivedAt) >= cacheAgeMax || now.Before(cached.receivedAt) {
		return nil
	}
	return cached
}

// put replaces the document of a page, or drops it if the response may not be cached.
func (m *documentCache) put(key pageKey, d *source.Definition, a *rawResponse) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if old := m.documents[key]; old != nil {
		m.bytes -= len(old.body)
		delete(m.documents, key)
	}
	etag, lastModified := validator(a.header, "Etag"), validator(a.header, "Last-Modified")
	noStore := strings.Contains(strings.ToLower(a.header.Get("Cache-Control")), "no-store")
	if a.method != http.MethodGet || noStore || len(a.body) > cachedBytesMax || etag == "" && lastModified == "" {
		return
	}
	if m.documents == nil || m.bytes+len(a.body) > cacheBytesMax {
		m.documents, m.bytes = map[pageKey]*cachedDocument{}, 0
	}
	m.documents[key] = &cachedDocument{
		definition: d, url: a.url.String(), etag: etag, lastModified: lastModified,
		contentType: a.header.Get("Content-Type"), body: bytes.Clone(a.body), receivedAt: a.receivedAt,
	}
	m.bytes += len(a.body)
}

// validator returns a header that is sent back unchanged; an oversized one counts as missing.
func validator(header http.Header, name string) string {
	if text := header.Get(name); len(text) <= validatorBytesMax {
		return text
	}
	return ""
}

// setValidators makes a request conditional.
func (r *cachedDocument) setValidators(header http.Header) {
	if r.etag != "" {
		header.Set("If-None-Match", r.etag)
	}
	if r.lastModified != "" {
		header.Set("If-Modified-Since", r.lastModified)
	}
}

// response returns the cached document as the response to a request that was answered with "not modified".
func (r *cachedDocument) response(notModified *rawResponse) *rawResponse {
	whole := *notModified
	whole.status, whole.body = http.StatusOK, bytes.Clone(r.body)
	whole.header = http.Header{"Content-Type": {r.contentType}}
	return &whole
}
