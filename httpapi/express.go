package httpapi

import (
	"bytes"
	"hash/maphash"
	"net/http"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/conn"
	"github.com/tasard/tasard/httpapi/internal/fields"
	"github.com/tasard/tasard/httpapi/internal/params"
)

// The express path answers a request in the Read of its connection, before the HTTP library sees it. It answers only
// requests whose head (request line and headers) was answered with 200 before. The API key may differ, every other
// byte must be the same:
//
//	bytes of a head ─ knownHeads ─ shedder ─ admitter ─ page of the service ─ head and body in one write
//
// The express path skips the HTTP library, conn.Malformed, the router and the parameters: their results depend only on
// the bytes of the head. It calls the load shedder, the admitter and the service for each request. Its response differs
// from that of the ordinary path only in request id and date (express_test.go).
//
// If the response would not be a 200, the express path writes nothing and the HTTP library reads the request. The
// ordinary path then continues with the same requestState, so that the request is not charged twice.

const (
	knownHeadsMax     = 1 << 10 // a power of two
	knownHeadBytesMax = 1 << 10
	// oneWriteBytesMax is the longest body that is copied behind its head, so that one write sends both.
	oneWriteBytesMax = 12 << 10
	// writeBytesMax limits the buffer for responses to pipelined requests: a longer buffer is written at once.
	writeBytesMax = 32 << 10
)

// keyPrefix is the common prefix of live and test keys.
const keyPrefix = "tasard_"

// knownHead is the head of a request without its API key, with the parameters that the ordinary path parsed from it. It
// is immutable.
type knownHead struct {
	before, after string // the bytes before and after the key; in a head without a key, before is the whole head
	keyed         bool   // the head has a key

	route       *route
	routeID     routeID
	query       params.Query
	today       engine.Date // query is valid only on this day, because a range of dates may end today
	acceptsGzip bool
	priorities  [2]conn.Priority // of anonymous callers, and of callers with a key
}

// matches reports whether a request has this head, and returns the key of the request.
func (h *knownHead) matches(request []byte) (key []byte, same bool) {
	start := len(h.before)
	end := start
	if h.keyed {
		end += account.KeyLength
	}
	same = len(request) == end+len(h.after) && string(request[:start]) == h.before && string(request[end:]) == h.after
	if !same {
		return nil, false
	}
	return request[start:end], true
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

// splitKey splits a head at its first API key, which may be in any header. key is nil if the head has none.
func splitKey(request []byte) (before, key, after []byte) {
	start := bytes.Index(request, bytesOf(keyPrefix))
	if start < 0 || len(request)-start < account.KeyLength {
		return request, nil, nil
	}
	return request[:start], request[start : start+account.KeyLength], request[start+account.KeyLength:]
}

func (h *knownHeads) hash(before, after []byte) uint64 {
	return maphash.Bytes(h.seed, before) + 31*maphash.Bytes(h.seed, after)
}

// find returns the known head of a request, or nil, and the key of the request. last is the known head of the previous
// request on the connection; clients often repeat it.
func (h *knownHeads) find(last *knownHead, request []byte) (head *knownHead, key []byte) {
	if last != nil {
		if key, same := last.matches(request); same {
			return last, key
		}
	}
	before, _, after := splitKey(request)
	if head = h.slots[h.hash(before, after)%knownHeadsMax].head.Load(); head == nil {
		return nil, nil
	}
	key, same := head.matches(request)
	if !same {
		return nil, nil
	}
	return head, key
}

// keepHead stores the head of a request that the ordinary path has answered with 200, if the express path may answer
// it. The head must be a GET with HTTP/1.1, without If-None-Match, that came without a proxy.
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
	before, key, after := splitKey(request)
	if a.HasAuthorization != (key != nil) || bytes.Contains(after, bytesOf(keyPrefix)) {
		return
	}
	if key != nil {
		token, _ := bearerText(a.Authorization)
		if _, valid := account.ParseKey(key); !valid || !bytes.Equal(token, key) {
			return
		}
	}
	hash := s.heads.hash(before, after)
	slot := &s.heads.slots[hash%knownHeadsMax]
	if slot.lastHash.Swap(hash) != hash {
		return
	}
	target := header.RequestURI()
	slot.head.Store(&knownHead{
		before: string(before), after: string(after), keyed: key != nil, route: r, routeID: a.route, query: *q, today: a.now.today,
		acceptsGzip: a.acceptsGzip(ctx), priorities: [2]conn.Priority{priorityOf(target, false), priorityOf(target, true)},
	})
}

// express answers known heads at the beginning of read, and returns their length. See conn.Express.
func (s *Server) express(c *conn.Conn, read []byte) (used int, err error) {
	state := stateOf(c)
	if state == nil || state.proxied {
		return 0, nil
	}
	a := s.newRequestState(c, state)
	out, length := a.out[:0], 0
	for ; used < len(read) && err == nil; used += length {
		if length = headLength(read[used:]); length == 0 {
			break
		}
		c.BeginExpress(used == 0, length == len(read))
		extended, answered := s.expressOne(a, read[used:used+length], out)
		if out = extended; !answered {
			break
		}
		*a = requestState{conn: c, connState: state, requestScratch: a.requestScratch}
		if len(out) >= writeBytesMax {
			_, err = c.Write(out)
			out = out[:0]
		}
	}
	if len(out) > 0 && err == nil {
		_, err = c.Write(out)
	}
	if used > 0 {
		_ = c.SetReadDeadline(time.Now().Add(s.config.Limits.IdleTimeout)) //nolint:forbidigo // a deadline is in real time, not in Config.Clock
	}
	if a.out = out; state.handedOver == nil {
		s.requestStates.Put(a)
	}
	return used, err
}

// headLength returns the length of the head at the beginning of read, or 0 if the head is not complete.
func headLength(read []byte) int {
	const end = "\r\n\r\n"
	index := bytes.Index(read, bytesOf(end))
	if index < 0 {
		return 0
	}
	return index + len(end)
}

// expressOne appends the response for a request to out. If it returns false, the ordinary path must answer the request.
// The load shedder and the admitter have then left their results in a, if they were called.
func (s *Server) expressOne(a *requestState, request, out []byte) (extended []byte, answered bool) {
	if s.load.draining.Load() != nil {
		return out, false
	}
	head, key := s.heads.find(a.connState.head, request)
	if head == nil {
		return out, false
	}
	caller := account.Caller{Address: a.conn.Peer()}
	if head.keyed {
		if caller.Key, caller.HasKey = account.ParseKey(key); !caller.HasKey {
			return out, false // not a key: the HTTP library may reject these bytes
		}
	}
	a.connState.head = head
	a.route, a.expressed = head.routeID, true
	began := time.Now() //nolint:forbidigo // the HTTP library measures in real time too
	page, isOK := s.expressPage(a, head, caller)
	if !isOK {
		a.connState.handedOver = a
		return out, false
	}
	body, coding := page.rendered.body(a.now, head.acceptsGzip)
	out = s.appendResponseHead(out, a, page, coding, len(body), began)
	if len(body) <= oneWriteBytesMax || !a.conn.QueueBody(body) {
		out = append(out, body...)
	}
	s.counters.countStatus(a, began, 0, fasthttp.StatusOK)
	if s.config.AccessLog != nil && fasthttp.StatusOK >= s.config.AccessStatusMin {
		s.config.AccessLog(s.accessRecord(a, began, http.MethodGet, fasthttp.StatusOK, len(body), a.conn.Peer()))
	}
	_ = a.conn.SetWriteDeadline(time.Now().Add(s.config.Limits.WriteTimeout)) //nolint:forbidigo // a deadline is in real time
	return out, true
}

// expressPage calls the load shedder, the admitter and the service. It returns false if the response is not a 200. It
// also returns false after a panic: the ordinary path calls repanic, logs the panic and answers 500.
func (s *Server) expressPage(a *requestState, head *knownHead, caller account.Caller) (page dataPage, isOK bool) {
	defer func() {
		if cause := recover(); cause != nil {
			a.panicked, isOK = &handedPanic{cause, debug.Stack()}, false
		}
	}()
	if _, sampled := a.conn.RequestArrived(); sampled {
		keyed := 0
		if a.connState.keyed {
			keyed = 1
		}
		if a.shed = !a.conn.Admit(head.priorities[keyed]); a.shed {
			return page, false
		}
	}
	s.admit(a, caller)
	if a.admitErr != nil || a.limitsEnforced && !a.admission.Admitted || head.today != a.now.today {
		return page, false
	}
	page, err := head.route.page(s, &head.query, a.now)
	return page, err == nil
}

// handedPanic is a panic that expressPage recovered.
type handedPanic struct {
	cause any
	stack []byte
}

// repanic raises the panic that expressPage recovered, if there was one.
func (a *requestState) repanic() {
	if a.panicked != nil {
		panic(a.panicked)
	}
}

// appendResponseHead appends the head of a 200 response, formatted as by the HTTP library.
func (s *Server) appendResponseHead(out []byte, a *requestState, page dataPage, coding string, length int, now time.Time) []byte {
	out = append(out, "HTTP/1.1 200 OK\r\n"...)
	out = append(out, s.dateLine(now)...)
	out = fields.AppendNumber(append(out, fasthttp.HeaderContentLength+": "...), int64(length))
	out = append(out, "\r\n"...)
	out = s.appendHead(out, a, page.rendered.etag, a.now.maxAge(page.changesAt), coding)
	out = append(out, s.constantHeaders.withBody...)
	return append(out, "\r\n"...)
}

// dateLine is the Date header line for one second.
type dateLine struct {
	unix int64
	line string
}

// dateLine returns the Date header line for now. It formats the line once a second.
func (s *Server) dateLine(now time.Time) string {
	d := s.lastDate.Load()
	if d == nil || d.unix != now.Unix() {
		var line strings.Builder
		line.WriteString(fasthttp.HeaderDate + ": ")
		line.Write(fasthttp.AppendHTTPDate(nil, now))
		line.WriteString("\r\n")
		d = &dateLine{now.Unix(), line.String()}
		s.lastDate.Store(d)
	}
	return d.line
}
