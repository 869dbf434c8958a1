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

// The express path answers requests in the connection's Read, before the HTTP library sees them. It knows the raw heads
// of requests that were answered 200 before, without their API keys, and answers a request with one of these heads:
//
//	bytes of a head ─ knownHeads ─ shedder ─ admitter ─ page of the service ─ head and body in one write
//
// It skips the HTTP library, conn.Malformed, the router and the parameters, whose results depend only on these bytes.
// It asks the load shedder, the admitter and the service for each request, as the ordinary path does. Its answers are
// the same, except for request id, date and counters (express_test.go). If the answer would not be a plain 200, the
// express path writes nothing and the library reads the request. The ordinary path then continues with the same
// requestState, so that nothing is asked or charged twice.

const (
	knownHeadsMax     = 1 << 10 // a power of two
	knownHeadBytesMax = 1 << 10
	// oneWriteBytesMax is the longest body that is copied into one buffer with its head; longer ones are not copied.
	oneWriteBytesMax = 12 << 10
	// writeBytesMax is the number of bytes of answers to pipelined requests from which they are written.
	writeBytesMax = 32 << 10
)

// keyMark is the prefix of keys of both kinds.
const keyMark = "tasard_"

// knownHead is the head of a request without its key, and what the ordinary path parsed from it. It is immutable.
type knownHead struct {
	before, after string // the bytes before and after the key; without a key, before is the whole head
	keyed         bool

	route       *route
	routeID     routeID
	query       params.Query
	today       engine.Date // query is valid on this day only: a range of dates may end today
	acceptsGzip bool
	priorities  [2]conn.Priority // without a key, and with one
}

// matches reports whether a request has this head, and returns its key.
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

// knownHeads is a hash table of heads with one head in each slot. A head is stored in its slot when it is offered twice
// in a row there, so that heads that are not repeated replace no others.
type knownHeads struct {
	seed  maphash.Seed
	slots [knownHeadsMax]struct {
		lastHash atomic.Uint64 // of the last head that was offered
		head     atomic.Pointer[knownHead]
	}
}

func newKnownHeads() *knownHeads { return &knownHeads{seed: maphash.MakeSeed()} }

// splitKey splits a head at its first key, which may be in any header. The key is nil if there is none.
func splitKey(request []byte) (before, key, after []byte) {
	start := bytes.Index(request, bytesOf(keyMark))
	if start < 0 || len(request)-start < account.KeyLength {
		return request, nil, nil
	}
	return request[:start], request[start : start+account.KeyLength], request[start+account.KeyLength:]
}

func (h *knownHeads) hash(before, after []byte) uint64 {
	return maphash.Bytes(h.seed, before) + 31*maphash.Bytes(h.seed, after)
}

// find returns the known head of a request, or nil, and the request's key. last is the connection's previous head.
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

// keepHead offers knownHeads the head of a request that the ordinary path has answered 200.
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
	if a.HasAuthorization != (key != nil) || bytes.Contains(after, bytesOf(keyMark)) {
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

// express is conn.Config.Express.
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
		_ = c.SetReadDeadline(time.Now().Add(s.config.Limits.IdleTimeout)) //nolint:forbidigo // as the library: deadlines of connections are real time
	}
	if a.out = out; state.handedOver == nil {
		s.requestStates.Put(a)
	}
	return used, err
}

// headLength returns the length of the head at the beginning of read, 0 if it is not complete.
func headLength(read []byte) int {
	const end = "\r\n\r\n"
	index := bytes.Index(read, bytesOf(end))
	if index < 0 {
		return 0
	}
	return index + len(end)
}

// expressOne appends the answer to a request to out. If it returns false, the ordinary path answers, with the results
// of the load shedder and the admitter that are in a.
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
			return out, false // the library may refuse the bytes in place of the key
		}
	}
	a.connState.head = head
	a.route, a.expressed = head.routeID, true
	began := time.Now() //nolint:forbidigo // as the library: deadlines of connections are real time
	page, isOK := s.expressPage(a, head, caller)
	if !isOK {
		a.connState.handedOver = a
		return out, false
	}
	body, coding := page.rendered.body(a.now, head.acceptsGzip)
	out = s.appendAnswer(out, a, page, coding, len(body), began)
	if len(body) <= oneWriteBytesMax || !a.conn.QueueBody(body) {
		out = append(out, body...)
	}
	s.counters.countStatus(a, began, 0, fasthttp.StatusOK)
	if s.config.AccessLog != nil && fasthttp.StatusOK >= s.config.AccessStatusMin {
		s.config.AccessLog(s.accessRecord(a, began, http.MethodGet, fasthttp.StatusOK, len(body), a.conn.Peer()))
	}
	_ = a.conn.SetWriteDeadline(time.Now().Add(s.config.Limits.WriteTimeout)) //nolint:forbidigo // see above
	return out, true
}

// expressPage asks the load shedder, the admitter and the service. It returns false if the answer is not 200, and after
// a panic, which the ordinary path raises again, logs and answers with 500.
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
	if a.refusal != nil || a.tellsLimits && !a.admission.Admitted || head.today != a.now.today {
		return page, false
	}
	page, err := head.route.page(s, &head.query, a.now)
	return page, err == nil
}

// handedPanic is a panic of the express path on its way to the ordinary one.
type handedPanic struct {
	cause any
	stack []byte
}

// repanic raises a panic of the express path again.
func (a *requestState) repanic() {
	if a.panicked != nil {
		panic(a.panicked)
	}
}

// appendAnswer appends the head of an answer in the form in which the library writes it.
func (s *Server) appendAnswer(out []byte, a *requestState, page dataPage, coding string, length int, now time.Time) []byte {
	out = append(out, "HTTP/1.1 200 OK\r\n"...)
	out = append(out, s.dateLine(now)...)
	out = fields.AppendNumber(append(out, fasthttp.HeaderContentLength+": "...), int64(length))
	out = append(out, "\r\n"...)
	out = s.appendHead(out, a, page.rendered.etag, a.now.maxAge(page.changesAt), coding)
	out = append(out, s.constantHeaders.withBody...)
	return append(out, "\r\n"...)
}

// dateLine is the Date header line of one second.
type dateLine struct {
	unix int64
	line string
}

// dateLine returns the Date header line for now. It is formatted once a second.
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
