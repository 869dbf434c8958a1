package httpapi

import (
	"bytes"
	"hash/crc32"
	"sync/atomic"

	"github.com/tasard/tasard/engine"
)

// noGeneratedAt is the offset of generatedAt for a body without one.
const noGeneratedAt = -1

// rateBytesGuess is the approximate length of a rate as JSON.
const rateBytesGuess = 720

// pageMemo is the value of engine.Page.Rendered: the encoded forms of a page. The form depends on the request: only
// /v1/rates/best echoes its operation, and requests of several operations may share a page.
type pageMemo struct {
	renderings  [formCount]atomic.Pointer[renderedPage]
	conversions [operationCount]atomic.Pointer[conversionTemplate]
}

// bodyForm identifies an encoding of a page.
type bodyForm uint8

const (
	formList bodyForm = iota // without an echo of the operation
	formBestBuy
	formBestSell
	formCount
)

// operationCount is how many conversion templates a page can have: one for each operation.
const operationCount = 2

// memoOf returns the memo of a page and creates it at the first call.
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

// encodedBody is an encoded body with the offset of its generatedAt, or noGeneratedAt.
type encodedBody struct {
	body        []byte
	generatedAt int
}

// renderedPage is the encoded answer of a page. It is encoded once, and copied with a new generatedAt at most once a
// second. The copies are immutable, so that a connection can write a copy while a request makes the next. Two requests
// may make a copy at the same time; both copies are equal.
type renderedPage struct {
	etag        []byte
	generatedAt int
	plain       atomic.Pointer[bodyVersion]
	gzip        atomic.Pointer[gzipVersion]
}

// bodyVersion is a body with the second of its generatedAt. A body without generatedAt is valid at any time.
type bodyVersion struct {
	second int64
	body   []byte
}

// gzipVersion is a bodyVersion compressed with gzip. Its last block, from generatedAt on, is stored uncompressed, so
// that patch can write a new time and checksum.
type gzipVersion struct {
	bodyVersion
	generatedAt int    // offset of generatedAt in body, or noGeneratedAt
	headCRC     uint32 // checksum of the uncompressed text before it
}

func newRenderedPage(d encodedBody, now requestTime) *renderedPage {
	r := &renderedPage{etag: bodyTag(d), generatedAt: d.generatedAt}
	r.plain.Store(&bodyVersion{now.unix, bytes.Clone(d.body)})
	return r
}

// body returns the body with the time of now and its coding: gzip, or "" for none. The caller must not change the body.
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

// patch replaces the time and the checksum.
func (p *gzipVersion) patch(now requestTime) {
	copy(p.body[p.generatedAt:], now.text[:])
	trailer := len(p.body) - gzipTrailerBytes
	sum := crc32.Update(p.headCRC, crc32.IEEETable, p.body[p.generatedAt:trailer])
	putChecksum(p.body[trailer:], sum)
}
