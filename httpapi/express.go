package httpapi

import (
	"bytes"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/httpapi/conn"
	"github.com/tasard/tasard/httpapi/internal/fields"
)

// The express path answers nearly all requests for data: plain GETs (conn.PlainGet) whose answer is a 200 or 304. It
// does so in the Read of the connection, before the HTTP library (fasthttp) sees them:
//
//	bytes ─ conn.ParsePlainGet ─ params ─ admitter ─ page of the service ─ head and body in one write
//
// It either answers a request or leaves it to the ordinary path, which begins with serve in server.go: the HTTP
// library reads the same bytes. If the admitter was asked, or the express path panicked, it also leaves the state of
// the request (conn.Conn.User), so that a caller is charged once and one panic is one 500. So the express path has no
// errors of its own. Its responses differ from those of the ordinary path only in request id and date
// (express_test.go): its date is that of Config.Clock, that of the HTTP library the system's.

const (
	// oneWriteBytesMax is the longest body that is copied behind its head, so that one write sends both.
	oneWriteBytesMax = 12 << 10
	// writeBytesMax limits the buffer for responses to pipelined requests: a longer buffer is written at once.
	writeBytesMax = 32 << 10
)

// expressPanic is a panic of the express path, and its stack. The ordinary path panics with it.
type expressPanic struct {
	cause any
	stack []byte
}

// repanic panics again with a panic of the express path, at the same step of the request: before or after its
// admission.
func (a *requestState) repanic() {
	if a.panicked != nil {
		panic(a.panicked)
	}
}

// express answers the requests at the beginning of the bytes read, and returns the length of these requests. See
// conn.Express.
func (d *dataAPI) express(c *conn.Conn, read []byte) (used int, err error) {
	a := d.newRequestState(c)
	out := a.out[:0]
	leaves := false // the state to the ordinary path
	for used < len(read) && err == nil && d.load.draining.Load() == nil {
		get, isPlain := conn.ParsePlainGet(read[used:])
		if !isPlain {
			break
		}
		a.begin(c)
		began := c.Now()
		if !d.answered(a, &get) {
			leaves = a.panicked != nil || a.admitDone
			break
		}
		used += get.Length
		closes := d.load.draining.Load() != nil
		if closes {
			_ = c.Close() // after the response
		}
		out = d.appendExpressHead(out, a, closes)
		ready := c.Now()
		c.Extend(ready)
		d.countExpress(a, began, ready)
		switch {
		case len(a.response.body) > oneWriteBytesMax:
			err = c.WriteBoth(out, a.response.body)
			out = out[:0]
		default:
			if out = append(out, a.response.body...); len(out) >= writeBytesMax {
				_, err = c.Write(out)
				out = out[:0]
			}
		}
	}
	if len(out) > 0 && err == nil {
		_, err = c.Write(out)
	}
	if a.out = out; leaves {
		c.User = a
	} else {
		d.requestStates.Put(a)
	}
	if used == len(read) {
		runtime.Gosched() // the next request has hardly arrived yet: to read at once would be a system call for nothing
	}
	return used, err
}

// answered sets a.response for a request. If the response would be an error, answered returns false. After a panic it
// also sets a.panicked.
func (d *dataAPI) answered(a *requestState, get *conn.PlainGet) (ok bool) {
	defer func() {
		if cause := recover(); cause != nil {
			a.panicked, ok = &expressPanic{cause, debug.Stack()}, false
		}
	}()
	path, text, _ := bytes.Cut(get.Target, []byte("?"))
	found, isData := byPath(d.dataRoutes, path)
	if !isData {
		return false
	}
	address := a.conn.Peer()
	if a.conn.Trusted() && get.XForwardedFor != nil {
		address = d.proxies.ClientAddress(address, [][]byte{get.XForwardedFor})
	}
	a.route = found.id
	a.setCaller(address, get.Authorization)
	d.admit(a)
	if !a.charged() {
		return false
	}
	acceptsGzip := get.AcceptEncoding != nil && fields.AcceptsGzip([][]byte{get.AcceptEncoding})
	var ifNoneMatch [][]byte
	if get.IfNoneMatch != nil {
		ifNoneMatch = [][]byte{get.IfNoneMatch}
	}
	problems, err := d.respond(a, found, path, text, ifNoneMatch, acceptsGzip)
	if len(problems) > 0 || err != nil {
		return false
	}
	d.countAdmission(a)
	return true
}

// appendExpressHead appends the head of a response, formatted as by the HTTP library.
func (d *dataAPI) appendExpressHead(out []byte, a *requestState, closes bool) []byte {
	r := &a.response
	constant := d.constantHeaders.withoutBody
	if r.status == fasthttp.StatusOK {
		constant = d.constantHeaders.withBody
		out = append(append(out, "HTTP/1.1 200 OK\r\nDate: "...), a.now.date...)
		out = strconv.AppendInt(append(out, "\r\nContent-Length: "...), int64(len(r.body)), 10)
	} else {
		out = append(append(out, "HTTP/1.1 304 Not Modified\r\nDate: "...), a.now.date...)
	}
	out = d.appendHead(append(out, "\r\n"...), a)
	if out = append(out, constant...); closes {
		out = append(out, "Connection: close\r\n"...)
	}
	return append(out, "\r\n"...)
}

var methodGet = []byte(fasthttp.MethodGet)

// countExpress counts a response, and passes it to the access log.
func (d *dataAPI) countExpress(a *requestState, began, ready time.Duration) {
	r := &a.response
	d.counters.Answer(int(a.route), methodGet, r.status, true, ready-began)
	if d.config.AccessLog != nil {
		at := time.Now().Add(began - ready) //nolint:forbidigo // in real time, like the HTTP library
		d.config.AccessLog(d.accessRecord(a, at, fasthttp.MethodGet, r.status, len(r.body), a.caller.Address))
	}
}
