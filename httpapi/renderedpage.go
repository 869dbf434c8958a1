package httpapi

import (
	"bytes"
	"hash/crc32"
	"sync/atomic"

	"github.com/tasard/tasard/engine"
)

// noGeneratedAt is the place of generatedAt in a body that has none.
const noGeneratedAt = -1

// rateBytesGuess is about what a rate takes as JSON.
const rateBytesGuess = 720

// pageMemo is what httpapi keeps in engine.Page.Memo: what was made of a page, each form once. Which form depends
// on the question: a ranking echoes its operation in best and not elsewhere, and a page may be shared between
// questions.
type pageMemo struct {
	renderings  [formCount]atomic.Pointer[renderedPage]
	conversions [operationCount]atomic.Pointer[conversionTemplate]
}

// bodyForm tells the encodings of one page apart.
type bodyForm uint8

const (
	formList bodyForm = iota // without an echo of the operation
	formBestBuy
	formBestSell
	formCount
)

// operationCount is how many conversion templates a page can have: one for each operation.
const operationCount = 2

// memoOf is the page's memo, made at the first call.
func memoOf(kept *atomic.Value) *pageMemo {
	if m, ok := kept.Load().(*pageMemo); ok {
		return m
	}
	kept.CompareAndSwap(nil, new(pageMemo))
	return kept.Load().(*pageMemo)
}

func bestForm(operation engine.Operation) bodyForm {
	return [...]bodyForm{formBestBuy, formBestSell}[operationIndex(operation)]
}

// encodedBody is a body as it was just encoded. stamp is where its generatedAt stands, noGeneratedAt when it has none.
type encodedBody struct {
	body        []byte
	generatedAt int
}

// renderedPage is the encoded answer of a page: encoded once, and copied with a new generatedAt at most once a
// second. The copies are immutable, so that a connection may still write one while the next is made. Two
// requests that meet may both make it; the copies are equal.
type renderedPage struct {
	etag        []byte
	generatedAt int
	plain       atomic.Pointer[bodyVersion]
	gzip        atomic.Pointer[gzipVersion]
}

// bodyVersion is a body with the second for which it is right. A body without generatedAt is right for ever.
type bodyVersion struct {
	second int64
	body   []byte
}

// gzipVersion is the gzip form of an edition. The last block, from generatedAt on, is stored uncompressed, so that
// a new time and its checksum are patched in like those of the plain form.
type gzipVersion struct {
	bodyVersion
	generatedAt int    // where generatedAt stands in body, noStamp when there is none
	headCRC     uint32 // checksum of what comes before it
}

func newRenderedPage(d encodedBody, now requestTime) *renderedPage {
	r := &renderedPage{etag: bodyTag(d), generatedAt: d.generatedAt}
	r.plain.Store(&bodyVersion{now.unix, bytes.Clone(d.body)})
	return r
}

// body is the body as it is sent with the time of now, and its coding: gzip, or "" for as it is. The caller must
// not change it.
func (r *renderedPage) body(now requestTime, acceptsGzip bool) (body []byte, coding string) {
	if body = r.plainBody(now); acceptsGzip && len(body) >= gzipBytesMin {
		return r.gzipBody(now), gzipCoding
	}
	return body, ""
}

// plainBody is the body with the time of now. The caller must not change it.
func (r *renderedPage) plainBody(now requestTime) []byte {
	last := r.plain.Load()
	if r.generatedAt == noGeneratedAt || last.second == now.unix {
		return last.body
	}
	body := bytes.Clone(last.body)
	copy(body[r.generatedAt:], now.text[:])
	r.plain.Store(&bodyVersion{now.unix, body})
	return body
}

// gzipBody is the gzip form of the body with the time of now. The caller must not change it.
func (r *renderedPage) gzipBody(now requestTime) []byte {
	last := r.gzip.Load()
	if last == nil {
		last = gzipEncoded(encodedBody{r.plainBody(now), r.generatedAt}, now.unix)
		r.gzip.Store(last)
	}
	if r.generatedAt == noGeneratedAt || last.second == now.unix {
		return last.body
	}
	next := &gzipVersion{bodyVersion{now.unix, bytes.Clone(last.body)}, last.generatedAt, last.headCRC}
	next.patch(now)
	r.gzip.Store(next)
	return next.body
}

// patch writes the time and the checksum anew.
func (p *gzipVersion) patch(now requestTime) {
	copy(p.body[p.generatedAt:], now.text[:])
	trailer := len(p.body) - gzipTrailerBytes
	sum := crc32.Update(p.headCRC, crc32.IEEETable, p.body[p.generatedAt:trailer])
	putChecksum(p.body[trailer:], sum)
}
