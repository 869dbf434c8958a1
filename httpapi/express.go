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

// The express path answers nearly all requests for data: plain GETs (conn.PlainGet) with a 200 or 304. It runs inside
// conn.Conn.Read, before the HTTP library gets the bytes:
//
//	bytes → conn.ParsePlainGet → Config.Admitter → params → page of Config.Service → head and body in one write
//
// The express path never sends an error. If the response would not be a 200 or 304, it leaves the request to the
// ordinary path (Server.serve), and the HTTP library reads the same bytes. If the express path has called the admitter
// or has panicked, it also leaves the state of the request in conn.Conn.User. The ordinary path then does not charge
// the caller a second time, and answers 500 after the panic.
//
// The responses of both paths differ only in the request id and the date (express_test.go). The express path takes the
// date from Config.Clock, the HTTP library from the system.

const (
	// oneWriteBytesMax is the maximum length of a body that is copied after the head, to send both in one write.
	oneWriteBytesMax = 12 << 10
	// writeBytesMax is the length from which buffered responses to pipelined requests are written.
	writeBytesMax = 32 << 10
)

var methodGet = []byte(fasthttp.MethodGet)

// expressPanic is a panic on the express path, with the stack. The ordinary path panics again with it.
type expressPanic struct {
	cause any
	stack []byte
}

// repanic repeats a panic of the express path. It is called at two steps, before and after the admission of the
// request.
func (a *requestState) repanic() {
	if a.panicked != nil {
		panic(a.panicked)
	}
}

// express implements conn.Config.Express.
func (d *dataAPI) express(c *conn.Conn, read []byte) (used int, err error) {
	a := d.requestStates.Get().(*requestState)
	out := a.out[:0]
	leaves := false // the ordinary path gets a
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
		d.counters.Answer(a.route, methodGet, a.response.status, true, ready-began)
		if d.config.AccessLog != nil {
			at := time.Now().Add(began - ready) //nolint:forbidigo // real time, like the HTTP library
			d.config.AccessLog(d.accessRecord(a, at, fasthttp.MethodGet, a.response.status, len(a.response.body), a.caller.Address))
		}
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
		runtime.Gosched() // the next request has probably not arrived yet, and reading too early wastes a system call
	}
	return used, err
}

// answered sets a.response for a request. It returns false if the response would be an error, or after a panic, which
// it stores in a.panicked.
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
	if a.conn.Trusted && get.XForwardedFor != nil {
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
		out = append(append(out, "HTTP/1.1 200 OK\r\nDate: "...), a.second.date...)
		out = strconv.AppendInt(append(out, "\r\nContent-Length: "...), int64(len(r.body)), 10)
	} else {
		out = append(append(out, "HTTP/1.1 304 Not Modified\r\nDate: "...), a.second.date...)
	}
	out = d.appendHead(append(out, "\r\n"...), a)
	if out = append(out, constant...); closes {
		out = append(out, "Connection: close\r\n"...)
	}
	return append(out, "\r\n"...)
}
