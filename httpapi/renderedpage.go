package httpapi

import (
	"bytes"
	"hash/crc32"
	"sync/atomic"

	"github.com/tasard/tasard/engine"
)

// noGeneratedAt is stored instead of the offset of generatedAt (a field with the time of the response) if a body does
// not have this field.
const noGeneratedAt = -1

// rateBytesGuess is the approximate length of a rate as JSON.
const rateBytesGuess = 720

// pageMemo is the value of engine.Page.Rendered: the encoded forms of a page. A page may have several forms, because
// requests for several paths can share it, and only the body of /v1/rates/best includes the parameter operation (buy or
// sell).
type pageMemo struct {
	renderings  [formCount]atomic.Pointer[renderedPage]
	conversions [operationCount]atomic.Pointer[conversionTemplate]
}

// bodyForm is an index of pageMemo.renderings.
type bodyForm uint8

const (
	formList bodyForm = iota // for all paths except /v1/rates/best
	formBestBuy
	formBestSell
	formCount
)

// operationCount is the number of values of engine.Operation: buy and sell.
const operationCount = 2

// memoOf returns the pageMemo of a page. The first call creates it.
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

type encodedBody struct {
	body        []byte
	generatedAt int // offset in body of the value of generatedAt, or noGeneratedAt
}

// renderedPage is a page in one encoded form. The page is encoded once. For requests in a later second, the body is
// copied and the copy gets a new generatedAt. Bodies are immutable, so that a connection can still write an old body
// while requests get a newer one. Two requests may make equal copies at the same time.
type renderedPage struct {
	etag        []byte
	generatedAt int // offset of its value in the plain body, or noGeneratedAt
	plain       atomic.Pointer[bodyVersion]
	gzip        atomic.Pointer[gzipVersion]
}

// bodyVersion is a body for one value of generatedAt.
type bodyVersion struct {
	second int64 // generatedAt as Unix time
	body   []byte
}

// gzipVersion is a bodyVersion compressed with gzip. The last block begins at generatedAt and is not compressed, so
// that patch can write a new time and checksum.
type gzipVersion struct {
	bodyVersion
	generatedAt int    // offset of its value in the compressed body, or noGeneratedAt
	headCRC     uint32 // checksum of the uncompressed body before generatedAt
}

func newRenderedPage(d encodedBody, now requestTime) *renderedPage {
	r := &renderedPage{etag: bodyTag(d), generatedAt: d.generatedAt}
	r.plain.Store(&bodyVersion{now.unix, bytes.Clone(d.body)})
	return r
}

// body returns the body, generated at now, and its content coding: "gzip" or "". The caller must not change the body.
func (r *renderedPage) body(now requestTime, acceptsGzip bool) (body []byte, coding string) {
	if body = r.plainBody(now); acceptsGzip && len(body) >= gzipBytesMin {
		return r.gzipBody(now), gzipCoding
	}
	return body, ""
}

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

// patch writes a new generatedAt and checksum.
func (p *gzipVersion) patch(now requestTime) {
	copy(p.body[p.generatedAt:], now.text[:])
	trailer := len(p.body) - gzipTrailerBytes
	sum := crc32.Update(p.headCRC, crc32.IEEETable, p.body[p.generatedAt:trailer])
	putChecksum(p.body[trailer:], sum)
}
