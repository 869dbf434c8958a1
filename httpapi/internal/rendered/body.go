package rendered

import (
	"bytes"
	"crypto/sha256"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/httpapi/internal/fields"
)

// NoGeneratedAt is the value of Encoded.GeneratedAt for a body without this field.
const NoGeneratedAt = -1

// Second is a time in whole seconds.
type Second struct {
	Unix int64
	Text Text
}

// Text is a time in the format of generatedAt: 2006-01-02T15:04:05Z.
type Text [len("2006-01-02T15:04:05Z")]byte

// SecondOf returns the second of a time.
func SecondOf(now time.Time) Second {
	s := Second{Unix: now.Unix()}
	now.UTC().AppendFormat(s.Text[:0], "2006-01-02T15:04:05Z")
	return s
}

// Encoded is a body as JSON or other text.
type Encoded struct {
	Body        []byte
	GeneratedAt int // offset in Body of generatedAt's value, or NoGeneratedAt
}

// ETag returns the weak ETag of a body: a digest of the body without generatedAt, so that it changes only with the
// data.
func (e Encoded) ETag() []byte {
	digest := sha256.New()
	if e.GeneratedAt == NoGeneratedAt {
		digest.Write(e.Body)
	} else {
		digest.Write(e.Body[:e.GeneratedAt])
		digest.Write(e.Body[e.GeneratedAt+len(Text{}):])
	}
	return fields.AppendETag(nil, digest.Sum(nil))
}

// Body is a response body in its encoded forms. It is safe for concurrent use; two concurrent requests may make equal
// copies.
type Body struct {
	etag   []byte
	holes  []Span // generatedAt; empty for a body without this field
	newest atomic.Pointer[version]
	packed atomic.Pointer[Holed]
}

// version is a body for one value of generatedAt.
type version struct {
	second int64 // generatedAt as Unix time
	plain  []byte
	gzip   atomic.Pointer[[]byte]
}

// New returns a body encoded in this second.
func New(e Encoded, second *Second) *Body {
	b := &Body{etag: e.ETag()}
	if e.GeneratedAt != NoGeneratedAt {
		b.holes = []Span{{e.GeneratedAt, e.GeneratedAt + len(Text{})}}
	}
	b.newest.Store(&version{second: second.Unix, plain: bytes.Clone(e.Body)})
	return b
}

// Undated returns a body without generatedAt.
func Undated(text []byte) *Body { return New(Encoded{text, NoGeneratedAt}, new(Second)) }

// ETag returns the ETag of the body. It is weak, because all forms share it. Do not change it.
func (b *Body) ETag() []byte { return b.etag }

// At returns the body for this second, and its content coding: Gzip or "". It is compressed if the client accepts gzip
// and the body has at least GzipBytesMin bytes. Do not change the result.
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

// Plain returns an undated body, uncompressed. Do not change it.
func (b *Body) Plain() []byte { return b.newest.Load().plain }

// Send answers a request of net/http with an undated body. A 200 has an ETag, and becomes a 304 if the client already
// has the body. The caller must first set all headers except ETag, Vary and Content-Encoding.
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
	if shared, ok := w.(interface{ SetBody(body []byte) }); ok { // package httpapi takes it without a copy
		shared.SetBody(body)
		return
	}
	_, _ = w.Write(body) // for HEAD too: the server does not send that body
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

// compress compresses a version. Everything but the time is compressed only once.
func (b *Body) compress(plain []byte) []byte {
	if len(b.holes) == 0 {
		return NewHoled(plain, nil).Append(nil, plain, nil)
	}
	packed := b.packed.Load()
	if packed == nil {
		packed = NewHoled(plain, b.holes)
		b.packed.Store(packed)
	}
	return packed.Append(nil, plain, b.holes)
}
