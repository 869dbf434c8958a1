package rendered

import (
	"bytes"
	"crypto/sha256"
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

// Page is a body in its encoded forms. It is safe for concurrent use; two requests may make equal copies at the same
// time.
type Page struct {
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

// New returns the page of a body that was encoded in this second.
func New(e Encoded, second *Second) *Page {
	p := &Page{etag: e.ETag(), generatedAt: e.GeneratedAt}
	p.plain.Store(&version{second.Unix, bytes.Clone(e.Body)})
	return p
}

// ETag returns the ETag of the page. The caller must not change it.
func (p *Page) ETag() []byte { return p.etag }

// Body returns the body, generated in this second, and its content coding: Gzip or "". It is compressed if the client
// accepts gzip and the body has at least GzipBytesMin bytes. The caller must not change the body.
func (p *Page) Body(second *Second, acceptsGzip bool) (body []byte, coding string) {
	if body = p.plainBody(second); acceptsGzip && len(body) >= GzipBytesMin {
		return p.gzipBody(second), Gzip
	}
	return body, ""
}

func (p *Page) plainBody(second *Second) []byte {
	last := p.plain.Load()
	if p.generatedAt == NoGeneratedAt || last.second == second.Unix {
		return last.body
	}
	body := bytes.Clone(last.body)
	copy(body[p.generatedAt:], second.Text[:])
	p.plain.Store(&version{second.Unix, body})
	return body
}

func (p *Page) gzipBody(second *Second) []byte {
	last := p.gzip.Load()
	if last == nil {
		last = compress(Encoded{p.plainBody(second), p.generatedAt}, second.Unix)
		p.gzip.Store(last)
	}
	if p.generatedAt == NoGeneratedAt || last.second == second.Unix {
		return last.body
	}
	next := &gzipVersion{version{second.Unix, bytes.Clone(last.body)}, last.generatedAt, last.headCRC}
	next.setTime(second.Text)
	p.gzip.Store(next)
	return next.body
}
