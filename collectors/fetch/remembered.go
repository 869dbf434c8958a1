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
	rememberedBytesMax    = 1 << 20  // of one document
	rememberedBytesAllMax = 32 << 20 // of all of them; the one that was used longest ago goes first
	validatorBytesMax     = 1 << 10
)

// rememberedMax is how long the word "not modified" is believed. After that the whole document is asked for again, so that a server
// whose validators never change can't freeze a rate for longer than a day.
const rememberedMax = 24 * time.Hour

// pageKey names one page of one source.
type pageKey struct {
	id   string
	page int
}

// remembered is a document with its validators. It is immutable.
type remembered struct {
	definition     *source.Definition // another one under the same id asks anew
	url            string
	etag, modified string
	contentType    string
	body           []byte
	got            time.Time
}

// memory holds the last document of each page that has validators.
type memory struct {
	mu    sync.Mutex
	pages map[pageKey]*kept
	bytes int
	clock uint64 // counts uses
}

type kept struct {
	*remembered
	used uint64
}

// find gives what is remembered of a page, nil = nothing that may be used now.
func (m *memory) find(key pageKey, d *source.Definition, now time.Time) *remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.pages[key]
	if !ok || k.definition != d || now.Sub(k.got) >= rememberedMax || now.Before(k.got) {
		return nil
	}
	m.clock++
	k.used = m.clock
	return k.remembered
}

// keep remembers an answer in place of the one before, if it may be and is worth it.
func (m *memory) keep(key pageKey, d *source.Definition, a *answer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget(key)
	entry := &remembered{
		definition: d, url: a.url.String(), etag: validator(a.header, "Etag"), modified: validator(a.header, "Last-Modified"),
		contentType: a.header.Get("Content-Type"), got: a.at,
	}
	noStore := strings.Contains(strings.ToLower(a.header.Get("Cache-Control")), "no-store")
	if a.method != http.MethodGet || noStore || len(a.body) > rememberedBytesMax || entry.etag == "" && entry.modified == "" {
		return
	}
	entry.body = bytes.Clone(a.body)
	if m.pages == nil {
		m.pages = map[pageKey]*kept{}
	}
	m.clock++
	m.pages[key] = &kept{remembered: entry, used: m.clock}
	m.bytes += len(entry.body)
	for m.bytes > rememberedBytesAllMax {
		m.forget(m.oldest())
	}
}

// forget and oldest are called with mu held.
func (m *memory) forget(key pageKey) {
	if k, ok := m.pages[key]; ok {
		m.bytes -= len(k.body)
		delete(m.pages, key)
	}
}

func (m *memory) oldest() pageKey {
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

// ask makes a request conditional.
func (r *remembered) ask(header http.Header) {
	if r.etag != "" {
		header.Set("If-None-Match", r.etag)
	}
	if r.modified != "" {
		header.Set("If-Modified-Since", r.modified)
	}
}

// answer is what is remembered, as if it had come now.
func (r *remembered) answer(now *answer) *answer {
	header := http.Header{}
	header.Set("Content-Type", r.contentType)
	return &answer{method: now.method, url: now.url, status: http.StatusOK, header: header, body: bytes.Clone(r.body), at: now.at}
}
