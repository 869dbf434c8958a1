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

// The express path answers nearly all requests for data: plain GETs (conn.PlainGet) with a 200 or 304. It runs in the
// connection's Read, before the HTTP library (fasthttp) sees the bytes:
//
//	bytes ─ conn.ParsePlainGet ─ params ─ admitter ─ page of the service ─ head and body in one write
//
// It either answers a request or leaves it to the ordinary path (serve in server.go), where the HTTP library reads the
// same bytes. After a call of the admitter or a panic, it also leaves the request's state (conn.Conn.User), so that the
// ordinary path charges the caller only once and reports one panic as one 500. The express path therefore produces no
// errors itself. Its responses differ from the ordinary ones only in request id and date (express_test.go): it takes
// the date from Config.Clock, the HTTP library from the system.

const (
	// oneWriteBytesMax is the maximum length of a body that is copied behind its head, to send both in one write.
	oneWriteBytesMax = 12 << 10
	// writeBytesMax limits the buffer of responses to pipelined requests. A longer buffer is written at once.
	writeBytesMax = 32 << 10
)

// expressPanic is a panic of the express path, with its stack. The ordinary path repeats the panic.
type expressPanic struct {
	cause any
	stack []byte
}

// repanic repeats a panic of the express path at the same step of the request: before or after its admission.
func (a *requestState) repanic() {
	if a.panicked != nil {
		panic(a.panicked)
	}
}

// express answers the requests at the beginning of the read bytes, and returns their length. See conn.Express.
func (d *dataAPI) express(c *conn.Conn, read []byte) (used int, err error) {
	a := d.newRequestState(c)
	out := a.out[:0]
	leaves := false // leaves the state to the ordinary path
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
		runtime.Gosched() // the next request has hardly arrived yet, and an early read would waste a system call
	}
	return used, err
}

// answered sets a.response for a request. It returns false if the response would be an error. After a panic it also
// sets a.panicked.
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

// appendExpressHead appends a response's head in the HTTP library's format.
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

// countExpress counts a response and reports it to the access log.
func (d *dataAPI) countExpress(a *requestState, began, ready time.Duration) {
	r := &a.response
	d.counters.Answer(int(a.route), methodGet, r.status, true, ready-began)
	if d.config.AccessLog != nil {
		at := time.Now().Add(began - ready) //nolint:forbidigo // real time, like the HTTP library
		d.config.AccessLog(d.accessRecord(a, at, fasthttp.MethodGet, r.status, len(r.body), a.caller.Address))
	}
}
