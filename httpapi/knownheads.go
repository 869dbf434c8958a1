package httpapi

import (
	"bytes"
	"hash/maphash"
	"sync/atomic"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/conn"
	"github.com/tasard/tasard/httpapi/internal/params"
)

const (
	knownHeadsMax     = 1 << 10 // a power of two
	knownHeadBytesMax = 1 << 10
)

// keyPrefix is the common prefix of live and test keys.
const keyPrefix = "tasard_"

// knownHead is the head of a request (request line and headers) that was answered with 200 before, so that the express
// path (express.go) may answer it. It is stored without the API key and, for a conversion, without the amount. It also
// has the parameters that were parsed from the head. Only start changes.
type knownHead struct {
	toAmount string // the bytes before the amount; "" if the head has no amount
	before   string // the bytes between amount and key; without an amount, from the beginning; without a key, to the end
	after    string // the bytes after the key
	keyed    bool   // the head has a key

	route       *route
	routeID     routeID
	query       params.Query
	today       engine.Date // query is valid only on this day, because a range of dates may end today
	acceptsGzip bool
	priorities  [2]conn.Priority // for load shedding: of anonymous callers, of callers with a key

	start atomic.Pointer[responseStart] // of the newest response
}

// headValues are the parts of a request's head that differ between requests with the same knownHead.
type headValues struct{ amount, key []byte }

// match returns the length of the request at the beginning of read if the request has this head, else 0. It also
// returns the amount and the key of the request.
func (h *knownHead) match(read []byte) (v headValues, length int) {
	start := 0
	if h.toAmount != "" {
		if len(read) < len(h.toAmount) || string(read[:len(h.toAmount)]) != h.toAmount {
			return v, 0
		}
		v.amount = leadingAmount(read[len(h.toAmount):])
		start = len(h.toAmount) + len(v.amount)
	}
	toKey := start + len(h.before)
	fromKey := toKey
	if h.keyed {
		fromKey += account.KeyLength
	}
	length = fromKey + len(h.after)
	if len(read) < length || string(read[start:toKey]) != h.before || string(read[fromKey:length]) != h.after {
		return v, 0
	}
	v.key = read[toKey:fromKey]
	return v, length
}

// knownHeads is a hash table with one head in each slot. keepHead stores a head when it gets the same head twice in a
// row for a slot, so that a head that a client sends only once does not replace another.
type knownHeads struct {
	seed  maphash.Seed
	slots [knownHeadsMax]struct {
		lastHash atomic.Uint64 // hash of the last head that keepHead got
		head     atomic.Pointer[knownHead]
	}
}

func newKnownHeads() *knownHeads { return &knownHeads{seed: maphash.MakeSeed()} }

// splitHead is the head of a request, split into the parts of a knownHead and the values between them. Missing parts
// and values are nil.
type splitHead struct {
	toAmount, before, after []byte
	headValues
}

// split splits a head at its first API key, which may be in any header, and at its amount.
func split(request []byte) splitHead {
	h := splitAmount(request)
	if start := bytes.Index(h.before, bytesOf(keyPrefix)); start >= 0 && len(h.before)-start >= account.KeyLength {
		end := start + account.KeyLength
		h.before, h.key, h.after = h.before[:start], h.before[start:end], h.before[end:]
	}
	return h
}

// splitAmount splits the head of a conversion at its amount. It does not split other heads, nor a head whose amount is
// percent-encoded.
func splitAmount(request []byte) splitHead {
	const beginning, name = "GET /v1/convert?", "amount="
	whole := splitHead{before: request}
	if !bytes.HasPrefix(request, bytesOf(beginning)) {
		return whole
	}
	target, _, _ := bytes.Cut(request[len(beginning):], bytesOf(" "))
	start := bytes.Index(target, bytesOf(name))
	if start < 0 || start > 0 && target[start-1] != '&' {
		return whole
	}
	start += len(beginning) + len(name)
	amount := leadingAmount(request[start:])
	end := start + len(amount)
	if end < len(beginning)+len(target) && request[end] != '&' {
		return whole
	}
	return splitHead{toAmount: request[:start], before: request[end:], headValues: headValues{amount: amount}}
}

// leadingAmount returns the digits and points at the beginning of text.
func leadingAmount(text []byte) []byte {
	end := 0
	for end < len(text) && (text[end] == '.' || '0' <= text[end] && text[end] <= '9') {
		end++
	}
	return text[:end]
}

func (h *knownHeads) hash(head *splitHead) uint64 {
	return maphash.Bytes(h.seed, head.before) + 31*(maphash.Bytes(h.seed, head.after)+31*maphash.Bytes(h.seed, head.toAmount))
}

// find returns the known head of the request at the beginning of read, or nil. It also returns the values and the
// length of the request. last is the known head of the previous request on the connection; clients often repeat it.
func (h *knownHeads) find(last *knownHead, read []byte) (head *knownHead, v headValues, length int) {
	if last != nil {
		if v, length = last.match(read); length > 0 {
			return last, v, length
		}
	}
	request := read[:headLength(read)]
	parts := split(request)
	if head = h.slots[h.hash(&parts)%knownHeadsMax].head.Load(); head == nil {
		return nil, v, 0
	}
	if v, length = head.match(request); length < len(request) || length == 0 {
		return nil, v, 0
	}
	return head, v, length
}

// keepHead stores the head of a request that was answered with 200 outside of the express path, if the express path may
// answer it. The head must be a GET with HTTP/1.1, without If-None-Match, that did not come through a trusted proxy.
func (s *Server) keepHead(ctx *fasthttp.RequestCtx, r *route, q *params.Query, a *requestState) {
	if a.conn == nil || s.harness != nil || a.connState.proxied {
		return
	}
	request, header := a.conn.Request(), &ctx.Request.Header
	afterMethod, isGet := bytes.CutPrefix(request, bytesOf("GET "))
	if !isGet || !bytes.HasPrefix(afterMethod, header.RequestURI()) || headLength(request) != len(request) || len(request) > knownHeadBytesMax || !header.IsHTTP11() ||
		a.HasIfNoneMatch || ctx.Response.Header.ConnectionClose() || header.ConnectionClose() || ctx.Request.MayContinue() {
		return
	}
	h := split(request)
	if a.HasAuthorization != (h.key != nil) || bytes.Contains(h.after, bytesOf(keyPrefix)) {
		return
	}
	if h.key != nil {
		token, _ := bearerText(a.Authorization)
		if _, valid := account.ParseKey(h.key); !valid || !bytes.Equal(token, h.key) {
			return
		}
	}
	if r.page == nil && (a.acceptsGzip(ctx) || q.Amount.String() != string(h.amount)) {
		return // the express path neither compresses conversions nor decodes amounts
	}
	hash := s.heads.hash(&h)
	slot := &s.heads.slots[hash%knownHeadsMax]
	if slot.lastHash.Swap(hash) != hash {
		return
	}
	target := header.RequestURI()
	slot.head.Store(&knownHead{
		toAmount: string(h.toAmount), before: string(h.before), after: string(h.after), keyed: h.key != nil,
		route: r, routeID: a.route, query: *q, today: a.now.today,
		acceptsGzip: a.acceptsGzip(ctx), priorities: [2]conn.Priority{priorityOf(target, false), priorityOf(target, true)},
	})
}
