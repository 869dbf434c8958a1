package httpapi

import (
	"bytes"
	"net/http"
	"runtime/debug"
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
// date (express_test.go): its date is that of Config.Clock, that of the HTTP library the system's. The clock of a node
// is the system's.
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
	out := a.out[:0]
	for used < len(read) && err == nil && s.load.draining.Load() == nil {
		head, values, length := s.heads.find(state.head, read[used:])
		if head == nil {
			break
		}
		if used > 0 {
			a.begin(c, state)
		}
		c.BeginExpress(used == 0, length == len(read))
		extended, answered := s.expressOne(a, head, values, out)
		if out = extended; !answered {
			break
		}
		if used += length; len(out) >= writeBytesMax {
			_, err = c.Write(out)
			out = out[:0]
		}
	}
	if len(out) > 0 && err == nil {
		_, err = c.Write(out)
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

// expressOne appends the response for a request to out, and sets the deadlines of its write and of the next read. If it
// returns false, the ordinary path must answer the request. In this case a has the results of the load shedder and the
// admitter, if they were called.
func (s *Server) expressOne(a *requestState, head *knownHead, values headValues, out []byte) (extended []byte, answered bool) {
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
		if caller.Key, caller.HasKey = account.DigestOfKey(values.key); !caller.HasKey {
			return out, false // not a key: the HTTP library may reject these bytes
		}
	}
	a.connState.head = head
	a.route, a.expressed = head.routeID, true
	began := time.Since(s.started) //nolint:forbidigo // in real time, like the HTTP library; it takes half the time of time.Now
	r, isOK := s.expressResponse(a, head, caller)
	if !isOK {
		a.connState.handedOver = a
		return out, false
	}
	out = s.appendResponseHead(out, a, head, &r)
	if len(r.body) <= oneWriteBytesMax || !a.conn.QueueBody(r.body) {
		out = append(out, r.body...)
	}
	ready := time.Since(s.started) //nolint:forbidigo // in real time too
	s.counters.countExpress(a, ready-began)
	if s.config.AccessLog != nil && fasthttp.StatusOK >= s.config.AccessStatusMin {
		at := time.Now().Add(began - ready) //nolint:forbidigo // in real time too
		s.config.AccessLog(s.accessRecord(a, at, http.MethodGet, fasthttp.StatusOK, len(r.body), a.conn.Peer()))
	}
	// Both count from here, so a response that blocks leaves less time for the next request, but at least IdleTimeout
	// minus WriteTimeout: 55 s by default. To read the clock again after the write would cost every request.
	_ = a.conn.SetWriteDeadline(s.firstWriteDeadline.Add(ready))
	_ = a.conn.SetReadDeadline(s.firstIdleDeadline.Add(ready))
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

// responseStart is the beginning of a 200 response, up to the headers that depend on the caller. It is immutable. Text
// depends only on the fields before it. The body stands for page and coding too: bodies are immutable, and no other
// body has its address while the responseStart refers to it.
type responseStart struct {
	body         []byte // of the response; every second has another one, except for pages without generatedAt
	second       int64
	unchangedFor int
	isShared     bool
	text         []byte
	idOffset     int // of the request id, which must be replaced in a copy of text
}

// appendResponseHead appends the head of a 200 response, formatted as by the HTTP library. The beginning is formatted
// once a second for each known head, except for conversions, because their bodies differ.
func (s *Server) appendResponseHead(out []byte, a *requestState, head *knownHead, r *expressResponse) []byte {
	a.id = s.newID(a)
	unchangedFor := a.now.unchangedFor(r.changesAt)
	if head.route.page == nil {
		out, _ = s.appendResponseStart(out, a, r, unchangedFor)
	} else {
		start, offset := head.start.Load(), len(out)
		if start == nil || !start.fits(a, r, unchangedFor) {
			start = &responseStart{body: r.body, second: a.now.Unix, unchangedFor: unchangedFor, isShared: a.isShared}
			start.text, start.idOffset = s.appendResponseStart(nil, a, r, unchangedFor)
			head.start.Store(start)
		}
		out = append(out, start.text...)
		*(*RequestID)(out[offset+start.idOffset:]) = a.id
	}
	out = s.appendCallerHeaders(out, a)
	return append(out, s.constantHeaders.withBodyAndEnd...)
}

func (t *responseStart) fits(a *requestState, r *expressResponse, unchangedFor int) bool {
	isSameBody := len(t.body) == len(r.body) && (len(r.body) == 0 || &t.body[0] == &r.body[0])
	return isSameBody && t.second == a.now.Unix && t.unchangedFor == unchangedFor && t.isShared == a.isShared
}

func (s *Server) appendResponseStart(out []byte, a *requestState, r *expressResponse, unchangedFor int) (extended []byte, idOffset int) {
	out = append(append(out, "HTTP/1.1 200 OK\r\nDate: "...), a.now.date...)
	out = fields.AppendNumber(append(out, "\r\nContent-Length: "...), int64(len(r.body)))
	out = append(out, "\r\n"...)
	return s.appendPageHeaders(out, a, r.etag, unchangedFor, r.coding), len(out) + len(headerRequestID+": ")
}
