package rendered

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"container/list"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/internal/encode"
	"github.com/tasard/tasard/httpapi/internal/fields"
)

// NoGeneratedAt is the value of Encoded.GeneratedAt for a body without this field.
const NoGeneratedAt = -1

// secondFormat is the format of generatedAt.
const secondFormat = "2006-01-02T15:04:05Z"

// Second is a time in whole seconds, as a number and as the text of generatedAt.
type Second struct {
	Unix int64
	Text [len(secondFormat)]byte
}

// SecondOf returns the second of a time.
func SecondOf(now time.Time) Second {
	s := Second{Unix: now.Unix()}
	now.UTC().AppendFormat(s.Text[:0], secondFormat)
	return s
}

// Encoded is a body as JSON or other text.
type Encoded struct {
	Body        []byte
	GeneratedAt int // offset in Body of generatedAt's value, or NoGeneratedAt
}

// ETag returns a weak ETag: a digest of the body without generatedAt, so that the ETag changes only with the data.
func (e Encoded) ETag() []byte {
	digest := sha256.New()
	if e.GeneratedAt == NoGeneratedAt {
		digest.Write(e.Body)
	} else {
		digest.Write(e.Body[:e.GeneratedAt])
		digest.Write(e.Body[e.GeneratedAt+len(secondFormat):])
	}
	return fields.AppendETag(nil, digest.Sum(nil))
}

// Body caches the encoded forms of a response body. It is safe for concurrent use. Concurrent calls may encode the same
// form twice.
type Body struct {
	etag   []byte
	holes  []Span // the span of generatedAt's value; empty for a body without this field
	newest atomic.Pointer[version]
	packed atomic.Pointer[SplicedGzip] // the compressed body without the value of generatedAt
}

// version is a body for one value of generatedAt.
type version struct {
	second int64 // generatedAt as Unix time
	plain  []byte
	gzip   atomic.Pointer[[]byte]
}

// New returns the Body of e, which was encoded in this second.
func New(e Encoded, second *Second) *Body {
	b := &Body{etag: e.ETag()}
	if e.GeneratedAt != NoGeneratedAt {
		b.holes = []Span{{e.GeneratedAt, e.GeneratedAt + len(secondFormat)}}
	}
	b.newest.Store(&version{second: second.Unix, plain: bytes.Clone(e.Body)})
	return b
}

// Undated returns the Body of a text without generatedAt.
func Undated(text []byte) *Body { return New(Encoded{text, NoGeneratedAt}, new(Second)) }

// ETag returns the ETag of the body. The ETag is weak, because all forms share it. Do not change the result.
func (b *Body) ETag() []byte { return b.etag }

// At returns the body for this second, and the content coding: Gzip or "". The body is compressed if the client accepts
// gzip and the body has at least GzipBytesMin bytes. Do not change the result.
func (b *Body) At(second *Second, acceptsGzip bool) (body []byte, coding string) {
	v := b.version(second)
	if !acceptsGzip || len(v.plain) < GzipBytesMin {
		return v.plain, ""
	}
	packed := v.gzip.Load()
	if packed == nil {
		packed = new(b.compress(v.plain))
		v.gzip.Store(packed)
	}
	return *packed, Gzip
}

// Plain returns a body without generatedAt, uncompressed. Do not change the result.
func (b *Body) Plain() []byte { return b.newest.Load().plain }

// Send answers a request of net/http with a body without generatedAt. A response with status 200 gets an ETag, and
// becomes a 304 if the client already has the body. The caller must first set all headers except ETag, Vary and
// Content-Encoding.
func (b *Body) Send(w http.ResponseWriter, r *http.Request, status int) {
	header := w.Header()
	header.Add("Vary", "Accept-Encoding")
	if status == http.StatusOK {
		header.Set("ETag", string(b.etag))
		if fields.IfNoneMatchHits(fields.Lines(r.Header.Values("If-None-Match")), b.etag) {
			header.Del("Content-Type")
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	body, coding := b.At(new(Second), fields.AcceptsGzip(fields.Lines(r.Header.Values("Accept-Encoding"))))
	if coding != "" {
		header.Set("Content-Encoding", coding)
	}
	w.WriteHeader(status)
	if shared, ok := w.(interface{ SetBody(body []byte) }); ok { // package httpapi does not copy the body
		shared.SetBody(body)
		return
	}
	_, _ = w.Write(body) // for HEAD too, because the server then drops the body
}

// version returns the version for a second.
func (b *Body) version(second *Second) *version {
	last := b.newest.Load()
	if len(b.holes) == 0 || last.second == second.Unix {
		return last
	}
	next := &version{second: second.Unix, plain: bytes.Clone(last.plain)}
	copy(next.plain[b.holes[0].Start:], second.Text[:])
	b.newest.Store(next)
	return next
}

// compress compresses a version. Only the first call compresses the whole body; later calls insert the new time.
func (b *Body) compress(plain []byte) []byte {
	if len(b.holes) == 0 {
		return NewSplicedGzip(plain, nil).Append(nil, plain, nil)
	}
	packed := b.packed.Load()
	if packed == nil {
		packed = NewSplicedGzip(plain, b.holes)
		b.packed.Store(packed)
	}
	return packed.Append(nil, plain, b.holes)
}

// Gzip is the content coding of compressed bodies.
const Gzip = "gzip"

const (
	// GzipBytesMin is the minimum length of a body worth compressing.
	GzipBytesMin = 1 << 10

	gzipLevel = 6 // higher than for Compressor, because a body is compressed once and sent often
)

// Span is a part of a body: from offset Start up to End.
type Span struct{ Start, End int }

// SplicedGzip is a body compressed with gzip, except for holes: parts of constant length whose content differs between
// responses. In a response each hole is a stored (uncompressed) deflate block:
//
//	gzip header | deflate blocks up to a hole | the hole, stored | deflate blocks … | last block, empty | CRC-32, length
type SplicedGzip struct {
	pieces [][]byte // the deflate blocks before each hole and after the last
}

// NewSplicedGzip compresses a body, except for the holes.
func NewSplicedGzip(body []byte, holes []Span) *SplicedGzip {
	h, start := &SplicedGzip{}, 0
	var out bytes.Buffer
	// The writer of klauspost/compress would lose its history when it is flushed after few bytes.
	w, _ := flate.NewWriter(&out, gzipLevel)
	for i := 0; i <= len(holes); i++ {
		end := len(body)
		if i < len(holes) {
			end = holes[i].Start
		}
		_, _ = w.Write(body[start:end]) // bytes.Buffer returns no errors
		_ = w.Flush()                   // ends at a byte boundary
		h.pieces = append(h.pieces, bytes.Clone(out.Bytes()))
		out.Reset()
		if i < len(holes) { // zero bytes keep the distances right; no match refers to them, because JSON has none
			start = holes[i].End
			_, _ = w.Write(make([]byte, start-end))
			_ = w.Flush()
			out.Reset()
		}
	}
	return h
}

// Append appends body, compressed with gzip, to dst. body must equal the body of NewSplicedGzip except in the holes.
func (h *SplicedGzip) Append(dst, body []byte, holes []Span) []byte {
	const deflate, unknownSystem = 8, 255
	dst = append(dst, 0x1f, 0x8b, deflate, 0, 0, 0, 0, 0, 0, unknownSystem) // RFC 1952, without file name and time
	for i, piece := range h.pieces {
		if dst = append(dst, piece...); i < len(holes) {
			text := body[holes[i].Start:holes[i].End]
			length := uint16(len(text)) //nolint:gosec // G115: an amount or a time
			dst = binary.LittleEndian.AppendUint16(append(dst, 0), length)
			dst = binary.LittleEndian.AppendUint16(dst, ^length)
			dst = append(dst, text...)
		}
	}
	dst = append(dst, 1, 0, 0, 0xff, 0xff) // last block, stored, empty
	dst = binary.LittleEndian.AppendUint32(dst, crc32.ChecksumIEEE(body))
	return binary.LittleEndian.AppendUint32(dst, uint32(len(body))) //nolint:gosec // G115: modulo 2^32, as RFC 1952 says
}

// Compressor compresses bodies that are sent once. The zero value is ready for use. It is safe for concurrent use.
type Compressor struct{ writers sync.Pool }

// Compress returns a body compressed with gzip.
func (c *Compressor) Compress(body []byte) []byte {
	var out bytes.Buffer
	w, reused := c.writers.Get().(*gzip.Writer)
	if reused {
		w.Reset(&out)
	} else {
		w, _ = gzip.NewWriterLevel(&out, gzip.BestSpeed)
	}
	_, _ = w.Write(body) // bytes.Buffer returns no errors
	_ = w.Close()
	c.writers.Put(w)
	return out.Bytes()
}

// Values of headers of all responses with data, of operations and files.
const (
	MethodsAllowed = "GET, HEAD, OPTIONS"
	// ContentPolicy keeps a browser from executing or loading anything if it shows a response as a web page.
	ContentPolicy = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; sandbox"
	// PreflightHeaders are the request headers that web pages of other origins may set. Libraries for browsers set some
	// of these headers on a GET; they are harmless.
	PreflightHeaders = "Accept, Content-Type, If-None-Match, X-Request-Id"
	// PreflightSeconds is how long a browser may cache the response to OPTIONS.
	PreflightSeconds = "86400"
)

// File answers requests for one file. Web pages of every origin may read it (CORS). All fields are required.
type File struct {
	MediaType    string
	CacheControl string
	// Admit counts a request for its client. At the client's limit it returns false, and how long to wait.
	Admit func(*http.Request) (wait time.Duration, ok bool)
	// Content returns the present content. If the error is an *engine.Error, the client gets its code and message. Any
	// other error becomes a 500.
	Content func() (*Body, error)
}

// ServeHTTP implements http.Handler.
func (f *File) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Access-Control-Allow-Origin", "*")
	header.Set("Access-Control-Expose-Headers", "ETag, Link, X-Request-Id")
	header.Set("Content-Security-Policy", ContentPolicy)
	header.Set("Cross-Origin-Resource-Policy", "cross-origin")
	header.Set("Referrer-Policy", "no-referrer")
	if wait, ok := f.Admit(r); !ok {
		writeError(w, r, &engine.Error{
			Code: engine.CodeRateLimited, Message: "Too many requests for pages and documents; Retry-After says how many seconds to wait.", RetryAfter: wait,
		})
		return
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		f.send(w, r)
	case http.MethodOptions:
		header.Set("Allow", MethodsAllowed)
		header.Set("Access-Control-Allow-Methods", MethodsAllowed)
		header.Set("Access-Control-Allow-Headers", PreflightHeaders)
		header.Set("Access-Control-Max-Age", PreflightSeconds)
		header.Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusNoContent)
	default:
		header.Set("Allow", MethodsAllowed)
		writeError(w, r, &engine.Error{
			Code: engine.CodeMethodNotAllowed, Message: "This document knows the methods " + MethodsAllowed + ".",
		})
	}
}

// send sends the file, or 304 if the client already has it.
func (f *File) send(w http.ResponseWriter, r *http.Request) {
	content, err := f.Content()
	if err != nil {
		var known *engine.Error
		if !errors.As(err, &known) {
			known = &engine.Error{Code: engine.CodeInternalError, Message: "The document can't be made."}
		}
		writeError(w, r, known)
		return
	}
	w.Header().Set("Cache-Control", f.CacheControl)
	w.Header().Set("Content-Type", f.MediaType)
	content.Send(w, r, http.StatusOK)
}

// writeError sends an API error. Package httpapi has added X-Request-Id to the request.
func writeError(w http.ResponseWriter, r *http.Request, err *engine.Error) {
	header := w.Header()
	status, _ := encode.Status(err.Code)
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		header.Set("Retry-After", fields.RetryAfter(err.RetryAfter))
	}
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	body := encode.Field([]byte(`{"error":{`), "code", string(err.Code))
	body = encode.Field(body, "message", err.Message)
	body = encode.Field(body, "requestId", r.Header.Get("X-Request-Id"))
	_, _ = w.Write(append(body, "}}"...)) //nolint:gosec // G705: JSON, which encode has escaped
}

// Cache stores values, such as bodies, until they expire. Beyond its limits it drops the least recently used values. It
// is safe for concurrent use.
type Cache[K comparable, V any] struct {
	entriesMax, bytesMax int

	mu      sync.Mutex
	entries map[K]*list.Element // elements of byUse
	byUse   list.List           // all *entry[K, V], most recently used first
	bytes   int                 // sum of entry.bytes
}

// Kept is a value for a Cache.
type Kept[V any] struct {
	Value V
	Until time.Time // expiry of the value
	Bytes int       // size of the value
}

type entry[K comparable, V any] struct {
	key   K
	bytes int // guarded by Cache.mu

	mu     sync.Mutex // locked during build, so that concurrent requests build a value only once
	kept   Kept[V]
	madeAt time.Time // if this is later than now, the clock was set back, and the value is built again
}

// NewCache returns a cache for at most entriesMax values, whose sizes are at most bytesMax in total.
func NewCache[K comparable, V any](entriesMax, bytesMax int) *Cache[K, V] {
	return &Cache[K, V]{entriesMax: entriesMax, bytesMax: bytesMax, entries: map[K]*list.Element{}}
}

// Get returns the value of a key. If the value is missing or expired, Get calls build with the last value or the zero
// value, and stores the result. It does not store errors: after one it calls build again.
func (c *Cache[K, V]) Get(key K, now time.Time, build func(last V) (Kept[V], error)) (V, error) {
	e := c.entryOf(key)
	e.mu.Lock()
	defer e.mu.Unlock()
	if !now.Before(e.madeAt) && now.Before(e.kept.Until) {
		return e.kept.Value, nil
	}
	made, err := build(e.kept.Value)
	if err != nil {
		return *new(V), err
	}
	e.kept, e.madeAt = made, now
	c.resize(e, made.Bytes)
	return made.Value, nil
}

// entryOf returns the entry of a key, and creates it if necessary.
func (c *Cache[K, V]) entryOf(key K) *entry[K, V] {
	c.mu.Lock()
	defer c.mu.Unlock()
	element := c.entries[key]
	if element == nil {
		element = c.byUse.PushFront(&entry[K, V]{key: key})
		c.entries[key] = element
		c.shrink()
	}
	c.byUse.MoveToFront(element)
	return element.Value.(*entry[K, V])
}

// resize sets the size of an entry, unless the entry has been dropped in the meantime.
func (c *Cache[K, V]) resize(e *entry[K, V], bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element := c.entries[e.key]; element != nil && element.Value == e {
		c.bytes += bytes - e.bytes
		e.bytes = bytes
		c.shrink()
	}
}

// shrink drops entries until the cache is within its limits.
func (c *Cache[K, V]) shrink() {
	for len(c.entries) > c.entriesMax || c.bytes > c.bytesMax {
		c.remove(c.byUse.Back())
	}
}

func (c *Cache[K, V]) remove(element *list.Element) {
	e := element.Value.(*entry[K, V])
	c.byUse.Remove(element)
	delete(c.entries, e.key)
	c.bytes -= e.bytes
}
