package httpapi

import (
	"bytes"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/conn"
	"github.com/tasard/tasard/httpapi/internal/fields"
)

// The express path answers a request in the Read of its connection, before the HTTP library (fasthttp) sees it. It
// answers only requests whose head (request line and headers) was answered with 200 before. All other requests take the
// ordinary path, which begins with serve in server.go. The API key and the amount of a conversion may differ from the
// earlier request, every other byte must be the same (knownheads.go):
//
//	bytes of a head ─ knownHeads ─ shedder ─ admitter ─ page of the service ─ head and body in one write
//
// The express path skips the HTTP library, the check conn.Malformed, the router and the parsing of parameters, because
// their results depend only on the bytes of the head. It parses the amount itself. It calls the load shedder, the
// admitter and the service for each request. Its response differs from that of the ordinary path only in request id and
// date (express_test.go).
//
// If the response would not be a 200, the express path writes nothing and the HTTP library reads the request. The
// ordinary path then continues with the same requestState, so that the request does not count against the quota twice.

const (
	// oneWriteBytesMax is the longest body that is copied behind its head, so that one write sends both.
	oneWriteBytesMax = 12 << 10
	// writeBytesMax limits the buffer for responses to pipelined requests: a longer buffer is written at once.
	writeBytesMax = 32 << 10
)

// express answers the requests with known heads at the beginning of the bytes read, and returns the length of these
// requests. See conn.Express.
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
// In this case a has the results of the load shedder and the admitter, if they were called.
func (s *Server) expressOne(a *requestState, request, out []byte) (extended []byte, answered bool) {
	if s.load.draining.Load() != nil {
		return out, false
	}
	head, values := s.heads.find(a.connState.head, request)
	if head == nil {
		return out, false
	}
	if head.toAmount != "" {
		amount, err := engine.ParseAmount(textOf(values.amount))
		if err != nil {
			return out, false
		}
		a.query = head.query
		a.query.Amount = amount
	}
	caller := account.Caller{Address: a.conn.Peer()}
	if head.keyed {
		if caller.Key, caller.HasKey = account.ParseKey(values.key); !caller.HasKey {
			return out, false // not a key: the HTTP library may reject these bytes
		}
	}
	a.connState.head = head
	a.route, a.expressed = head.routeID, true
	began := time.Now() //nolint:forbidigo // the HTTP library measures in real time too
	r, isOK := s.expressResponse(a, head, caller)
	if !isOK {
		a.connState.handedOver = a
		return out, false
	}
	body := r.body
	out = s.appendResponseHead(out, a, &r, began)
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

// expressResponse has the parts of a 200 response that depend on the page of results or on the amount of a conversion.
type expressResponse struct {
	etag, body []byte
	coding     string // "" or "gzip"
	changesAt  time.Time
}

// expressResponse calls the load shedder, the admitter and the service. It returns false if the response is not a 200.
// It also returns false after a panic: the ordinary path calls repanic, logs the panic and answers 500.
func (s *Server) expressResponse(a *requestState, head *knownHead, caller account.Caller) (r expressResponse, isOK bool) {
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
			return r, false
		}
	}
	s.admit(a, caller)
	if a.admitErr != nil || a.limitsEnforced && !a.admission.Admitted || head.today != a.now.today {
		return r, false
	}
	if head.route.page == nil {
		return s.expressConversion(a)
	}
	page, err := head.route.page(s, &head.query, a.now)
	if err != nil {
		return r, false
	}
	r = expressResponse{etag: page.rendered.ETag(), changesAt: page.changesAt}
	r.body, r.coding = page.rendered.Body(&a.now.Second, head.acceptsGzip)
	return r, true
}

// handedPanic is a panic that expressResponse recovered and repanic raises again.
type handedPanic struct {
	cause any
	stack []byte
}

// repanic raises the panic that expressResponse recovered, if there was one.
func (a *requestState) repanic() {
	if a.panicked != nil {
		panic(a.panicked)
	}
}

// appendResponseHead appends the head of a 200 response, formatted as by the HTTP library.
func (s *Server) appendResponseHead(out []byte, a *requestState, r *expressResponse, now time.Time) []byte {
	out = append(out, "HTTP/1.1 200 OK\r\n"...)
	out = append(out, s.dateLine(now)...)
	out = fields.AppendNumber(append(out, fasthttp.HeaderContentLength+": "...), int64(len(r.body)))
	out = append(out, "\r\n"...)
	out = s.appendHead(out, a, r.etag, a.now.unchangedFor(r.changesAt), r.coding)
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
