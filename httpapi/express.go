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

// The express path answers a request by its raw bytes, in the connection's Read, where they are those of a request
// that was answered 200 before, except for the key:
//
//	bytes of a head ─ knownHeads ─ shedder ─ admitter ─ page of the service ─ head and body in one write
//
// It leaves out the HTTP library, the guard, the router and the parameters, all of which depend on the bytes only.
// It asks the load shedder, the admitter and the service as the ordinary path does, each time. What it answers is
// what the ordinary path would have answered, except for request id, date and counters (express_test.go). Where
// anything else than a plain 200 is due it has written nothing, the library reads the request, and the ordinary
// path goes on with the requestState, so that nothing is asked or charged twice.

const (
	knownHeadsMax     = 1 << 10 // a power of two
	knownHeadBytesMax = 1 << 10
	// oneWriteBytesMax is up to which length a body is copied behind its head; a longer one leaves from where it lies.
	oneWriteBytesMax = 12 << 10
	// writeBytesMax is how many bytes of answers to requests that came behind each other are gathered for one write.
	writeBytesMax = 32 << 10
)

// keyMark is what keys of both kinds begin with.
const keyMark = "tasard_"

// knownHead is the head of a request without its key, and all that the ordinary path found in it. It is immutable.
type knownHead struct {
	before, after string // the key; without one, before is the whole head
	keyed         bool

	route       *route
	routeID     routeID
	query       params.Query
	today       engine.Date // the day for which query is right: a range of dates may end today
	acceptsGzip bool
	priorities  [2]conn.Priority // of an anonymous caller, and of one with a key
}

// matches tells whether a request has this head, and with which key.
func (h *knownHead) matches(request []byte) (key []byte, same bool) {
	from := len(h.before)
	to := from
	if h.keyed {
		to += account.KeyLength
	}
	same = len(request) == to+len(h.after) && string(request[:from]) == h.before && string(request[to:]) == h.after
	if !same {
		return nil, false
	}
	return request[from:to], true
}

// knownHeads are heads that were answered, each in the one slot of its hash. A head takes a slot when it comes twice in
// a row there, so that heads that are not repeated replace none and are not kept.
type knownHeads struct {
	seed  maphash.Seed
	slots [knownHeadsMax]struct {
		lastHash atomic.Uint64 // of the last head that was offered here
		head     atomic.Pointer[knownHead]
	}
}

func newKnownHeads() *knownHeads { return &knownHeads{seed: maphash.MakeSeed()} }

// splitKey cuts the key out of a head. It may be in any header, or be none.
func splitKey(request []byte) (before, key, after []byte) {
	at := bytes.Index(request, bytesOf(keyMark))
	if at < 0 || len(request)-at < account.KeyLength {
		return request, nil, nil
	}
	return request[:at], request[at : at+account.KeyLength], request[at+account.KeyLength:]
}

func (h *knownHeads) hash(before, after []byte) uint64 {
	return maphash.Bytes(h.seed, before) + 31*maphash.Bytes(h.seed, after)
}

// find is the head of a request, nil when it is not known, and its key. last is the one that the connection had before.
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

// keepHead offers the head of a request that the ordinary path has answered 200.
func (s *Server) keepHead(ctx *fasthttp.RequestCtx, r *route, q *params.Query, a *requestState) {
	if a.conn == nil || s.harness != nil || a.connState.proxied {
		return
	}
	request, header := a.conn.Request(), &ctx.Request.Header
	rest, get := bytes.CutPrefix(request, bytesOf("GET "))
	if !get || !bytes.HasPrefix(rest, header.RequestURI()) || headLength(request) != len(request) || len(request) > knownHeadBytesMax || !header.IsHTTP11() ||
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
		longer, answered := s.expressOne(a, read[used:used+length], out)
		if out = longer; !answered {
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

// headLength is the length of the head at the front of what was read, 0 when it is not there as a whole.
func headLength(read []byte) int {
	const end = "\r\n\r\n"
	at := bytes.Index(read, bytesOf(end))
	if at < 0 {
		return 0
	}
	return at + len(end)
}

// expressOne appends the answer to a request. Where it does not, it leaves what it has asked to the ordinary path.
func (s *Server) expressOne(a *requestState, request, out []byte) (longer []byte, answered bool) {
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
			return out, false // the library may refuse its bytes
		}
	}
	a.connState.head = head
	a.route, a.expressed = head.routeID, true
	began := time.Now() //nolint:forbidigo // as the library: deadlines of connections are real time
	page, good := s.expressPage(a, head, caller)
	if !good {
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

// expressPage asks the load shedder, the admitter and the service. It tells false where the answer is another than
// 200. A panic is that too: it goes on in the ordinary path, which answers 500 and tells of it.
func (s *Server) expressPage(a *requestState, head *knownHead, caller account.Caller) (page dataPage, good bool) {
	defer func() {
		if cause := recover(); cause != nil {
			a.panicked, good = &handedPanic{cause, debug.Stack()}, false
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

// repanic goes on with a panic of the express path.
func (a *requestState) repanic() {
	if a.panicked != nil {
		panic(a.panicked)
	}
}

// appendAnswer appends the head of an answer as the library makes it.
func (s *Server) appendAnswer(out []byte, a *requestState, page dataPage, coding string, length int, now time.Time) []byte {
	out = append(out, "HTTP/1.1 200 OK\r\n"...)
	out = append(out, s.dateLine(now)...)
	out = fields.AppendNumber(append(out, fasthttp.HeaderContentLength+": "...), int64(length))
	out = append(out, "\r\n"...)
	out = s.appendHead(out, a, page.rendered.etag, a.now.maxAge(page.changesAt), coding)
	out = append(out, s.constantHeaders.withBody...)
	return append(out, "\r\n"...)
}

// dateLine is the header Date of a second.
type dateLine struct {
	unix int64
	line string
}

// dateLine is the line for a moment, made once a second.
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
