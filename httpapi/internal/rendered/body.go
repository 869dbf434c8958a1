package rendered

import (
	"bytes"
	"crypto/sha256"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/httpapi/internal/fields"
)

// NoGeneratedAt is the value of Encoded.GeneratedAt if the body does not have this field.
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

// Encoded is a body.
type Encoded struct {
	Body        []byte
	GeneratedAt int // offset in Body of the value of generatedAt, or NoGeneratedAt
}

// ETag returns the weak ETag of a body: a digest of the body without the value of generatedAt, so that the ETag changes
// only with the data.
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

// Body is a response body in its encoded forms. It is safe for concurrent use; two requests may make equal copies at
// the same time.
type Body struct {
	etag        []byte
	generatedAt int // offset of its value in the plain body, or NoGeneratedAt
	plain       atomic.Pointer[version]
	gzip        atomic.Pointer[gzipVersion]
}

// version is a body for one value of generatedAt.
type version struct {
	second int64 // generatedAt as Unix time
	body   []byte
}

// New returns a body that was encoded in this second.
func New(e Encoded, second *Second) *Body {
	b := &Body{etag: e.ETag(), generatedAt: e.GeneratedAt}
	b.plain.Store(&version{second.Unix, bytes.Clone(e.Body)})
	return b
}

// Undated returns a body without generatedAt.
func Undated(text []byte) *Body { return New(Encoded{text, NoGeneratedAt}, new(Second)) }

// ETag returns the ETag of the body, which is weak, because all forms have the same. The caller must not change it.
func (b *Body) ETag() []byte { return b.etag }

// At returns the body, generated in this second, and its content coding: Gzip or "". It is compressed if the client
// accepts gzip and the body has at least GzipBytesMin bytes. The caller must not change the result.
func (b *Body) At(second *Second, acceptsGzip bool) (body []byte, coding string) {
	if body = b.plainBody(second); acceptsGzip && len(body) >= GzipBytesMin {
		return b.gzipBody(second), Gzip
	}
	return body, ""
}

// Plain returns an undated body, not compressed. The caller must not change it.
func (b *Body) Plain() []byte { return b.plain.Load().body }

// Send answers a request of net/http with an undated body. A 200 has an ETag, and becomes a 304 if the client has the
// body. The caller must set all headers but ETag, Vary and Content-Encoding before.
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

func (b *Body) plainBody(second *Second) []byte {
	last := b.plain.Load()
	if b.generatedAt == NoGeneratedAt || last.second == second.Unix {
		return last.body
	}
	body := bytes.Clone(last.body)
	copy(body[b.generatedAt:], second.Text[:])
	b.plain.Store(&version{second.Unix, body})
	return body
}

func (b *Body) gzipBody(second *Second) []byte {
	last := b.gzip.Load()
	if last == nil {
		last = compress(Encoded{b.plainBody(second), b.generatedAt}, second.Unix)
		b.gzip.Store(last)
	}
	if b.generatedAt == NoGeneratedAt || last.second == second.Unix {
		return last.body
	}
	next := &gzipVersion{version{second.Unix, bytes.Clone(last.body)}, last.generatedAt, last.headCRC}
	next.setTime(second.Text)
	b.gzip.Store(next)
	return next.body
}
