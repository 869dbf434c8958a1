package httpapi

import (
	"bytes"
	"hash/crc32"
	"sync/atomic"

	"github.com/tasard/tasard/engine"
)

// noStamp is the place of generatedAt in a body that has none.
const noStamp = -1

// rateBytesGuess is about what a rate takes as JSON.
const rateBytesGuess = 720

// memo is what httpapi keeps in engine.Page.Memo: what was made of a page, each form once. Which form depends on the
// question: a ranking echoes its operation in best and not elsewhere, and a page may be shared between questions.
type memo struct {
	renderings [formCount]atomic.Pointer[rendering]
	sheets     [operationForms]atomic.Pointer[sheet]
}

// form tells the encodings of one page apart.
type form uint8

const (
	formList form = iota // without an echo of the operation
	formBestBuy
	formBestSell
	formCount
)

// operationForms is how many conversion sheets a page can have: one for each operation.
const operationForms = 2

// memoOf is the page's memo, made at the first call.
func memoOf(kept *atomic.Value) *memo {
	if m, ok := kept.Load().(*memo); ok {
		return m
	}
	kept.CompareAndSwap(nil, new(memo))
	return kept.Load().(*memo)
}

func bestForm(operation engine.Operation) form {
	return [...]form{formBestBuy, formBestSell}[operationIndex(operation)]
}

// draft is a body as it was just encoded. stamp is where its generatedAt stands, noStamp when it has none.
type draft struct {
	body  []byte
	stamp int
}

// rendering is the encoded answer of a page: encoded once, and copied with a new generatedAt at most once a second (P5). The
// copies are immutable, so that a connection may still write one while the next is made. Two requests that meet may both
// make it; the copies are equal.
type rendering struct {
	etag  []byte
	stamp int
	plain atomic.Pointer[edition]
	gzip  atomic.Pointer[packedEdition]
}

// edition is a body with the second for which it is right. A body without generatedAt is right for ever.
type edition struct {
	second int64
	body   []byte
}

// packedEdition is the gzip form of an edition. The last block, from generatedAt on, is stored uncompressed, so that a new
// time and its checksum are patched in like those of the plain form.
type packedEdition struct {
	edition
	stamp   int    // where generatedAt stands in body, noStamp when there is none
	headCRC uint32 // checksum of what comes before it
}

func newRendering(d draft, now instant) *rendering {
	r := &rendering{etag: bodyTag(d), stamp: d.stamp}
	r.plain.Store(&edition{now.second, bytes.Clone(d.body)})
	return r
}

// plainBody is the body with the time of now. The caller must not change it.
func (r *rendering) plainBody(now instant) []byte {
	last := r.plain.Load()
	if r.stamp == noStamp || last.second == now.second {
		return last.body
	}
	body := bytes.Clone(last.body)
	copy(body[r.stamp:], now.text[:])
	r.plain.Store(&edition{now.second, body})
	return body
}

// gzipBody is the gzip form of the body with the time of now. The caller must not change it.
func (r *rendering) gzipBody(now instant) []byte {
	last := r.gzip.Load()
	if last == nil {
		last = packBody(draft{r.plainBody(now), r.stamp}, now.second)
		r.gzip.Store(last)
	}
	if r.stamp == noStamp || last.second == now.second {
		return last.body
	}
	next := &packedEdition{edition{now.second, bytes.Clone(last.body)}, last.stamp, last.headCRC}
	next.patch(now)
	r.gzip.Store(next)
	return next.body
}

// patch writes the time and the checksum anew.
func (p *packedEdition) patch(now instant) {
	copy(p.body[p.stamp:], now.text[:])
	trailer := len(p.body) - gzipTrailerBytes
	sum := crc32.Update(p.headCRC, crc32.IEEETable, p.body[p.stamp:trailer])
	putChecksum(p.body[trailer:], sum)
}
