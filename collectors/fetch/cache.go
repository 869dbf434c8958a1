package fetch

import (
	"bytes"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tasard/tasard/collectors/source"
)

// Limits of what is remembered for conditional requests.
const (
	cachedBytesMax    = 1 << 20  // of one document
	cacheBytesMax     = 32 << 20 // of all of them; the one that was used longest ago goes first
	validatorBytesMax = 1 << 10
)

// cacheAgeMax is how long the word "not modified" is believed. After that the whole document is asked for again, so that a server
// whose validators never change can't freeze a rate for longer than a day.
const cacheAgeMax = 24 * time.Hour

// pageKey names one page of one source.
type pageKey struct {
	id   string
	page int
}

// cachedDocument is a document with its validators. It is immutable.
type cachedDocument struct {
	definition         *source.Definition // another one under the same id asks anew
	url                string
	etag, lastModified string
	contentType        string
	body               []byte
	receivedAt         time.Time
}

// documentCache holds the last document of each page that has validators.
type documentCache struct {
	mu    sync.Mutex
	pages map[pageKey]*cacheEntry
	bytes int
	clock uint64 // counts uses
}

type cacheEntry struct {
	*cachedDocument
	used uint64
}

// get gives what is remembered of a page, nil = nothing that may be used now.
func (m *documentCache) get(key pageKey, d *source.Definition, now time.Time) *cachedDocument {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.pages[key]
	if !ok || k.definition != d || now.Sub(k.receivedAt) >= cacheAgeMax || now.Before(k.receivedAt) {
		return nil
	}
	m.clock++
	k.used = m.clock
	return k.cachedDocument
}

// put remembers an answer in place of the one before, if it may be and is worth it.
func (m *documentCache) put(key pageKey, d *source.Definition, a *rawResponse) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remove(key)
	entry := &cachedDocument{
		definition: d, url: a.url.String(), etag: validator(a.header, "Etag"), lastModified: validator(a.header, "Last-Modified"),
		contentType: a.header.Get("Content-Type"), receivedAt: a.receivedAt,
	}
	noStore := strings.Contains(strings.ToLower(a.header.Get("Cache-Control")), "no-store")
	if a.method != http.MethodGet || noStore || len(a.body) > cachedBytesMax || entry.etag == "" && entry.lastModified == "" {
		return
	}
	entry.body = bytes.Clone(a.body)
	if m.pages == nil {
		m.pages = map[pageKey]*cacheEntry{}
	}
	m.clock++
	m.pages[key] = &cacheEntry{cachedDocument: entry, used: m.clock}
	m.bytes += len(entry.body)
	for m.bytes > cacheBytesMax {
		m.remove(m.leastRecentlyUsed())
	}
}

// remove and oldest are called with mu held.
func (m *documentCache) remove(key pageKey) {
	if k, ok := m.pages[key]; ok {
		m.bytes -= len(k.body)
		delete(m.pages, key)
	}
}

func (m *documentCache) leastRecentlyUsed() pageKey {
	var key pageKey
	used := m.clock + 1
	for other, k := range m.pages {
		if k.used < used {
			key, used = other, k.used
		}
	}
	return key
}

// validator takes a header that is sent back as it came; one of unlikely size is left alone.
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

// rawResponse is what is remembered, as if it had come now.
func (r *cachedDocument) response(now *rawResponse) *rawResponse {
	header := http.Header{}
	header.Set("Content-Type", r.contentType)
	return &rawResponse{method: now.method, url: now.url, status: http.StatusOK, header: header, body: bytes.Clone(r.body), receivedAt: now.receivedAt}
}
