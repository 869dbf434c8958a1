package httpapi

import (
	"net"
	"runtime"

	"github.com/valyala/fasthttp"
)

// gatherer is a connection of TCP that can send a body from where it lies. The library copies head and body into one buffer and writes
// that, in pieces when it is small; here the body is kept aside, and goes out with the head in one system call.
//
// That is right only when the head is the next thing to be written and nothing follows it before a flush: when the client has sent no
// request behind this one. Whether it has is known from counting: what was handed to the server, against what its requests took.
// Where the count does not come out the answer is sent as the library would, which is never wrong.
type gatherer struct {
	lazyDeadlines
	tcp *net.TCPConn

	received, taken uint64 // bytes handed to the server, and those of its requests
	unwritten       bool   // an answer waits in the server's buffer
	alone           bool   // the request has nothing behind it, and no answer before it waits
	body            []byte // to be sent behind what is written next
	yields          bool
	parts           [2][]byte
	vector          net.Buffers
}

// Read is net.Conn's.
func (g *gatherer) Read(b []byte) (int, error) {
	n, err := g.lazyDeadlines.Read(b)
	g.received += uint64(n)
	return n, err
}

// begin tells the length of the request that is about to be answered. A length that is wrong by a byte or two, as after a bare LF, does
// no harm: no request is that short.
func (g *gatherer) begin(length int) {
	g.taken += uint64(length)
	g.alone = g.received == g.taken && !g.unwritten
	g.unwritten = true
}

// Write is net.Conn's. Behind an answer the server reads at once, long before the client can have asked again: the read finds nothing,
// and the connection has to be waited for. On one processor the others go first, and under load the next request is there then.
func (g *gatherer) Write(b []byte) (n int, err error) {
	g.unwritten = false
	if g.body == nil {
		n, err = g.lazyDeadlines.Write(b)
	} else {
		n, err = g.writeBoth(b)
	}
	if g.yields {
		runtime.Gosched()
	}
	return n, err
}

// writeBoth writes b and the body behind it.
func (g *gatherer) writeBoth(b []byte) (int, error) {
	if err := g.write.prepare(g.Conn.SetWriteDeadline); err != nil {
		return 0, err
	}
	g.parts = [2][]byte{b, g.body}
	g.body, g.vector = nil, g.parts[:]
	for {
		_, err := g.vector.WriteTo(g.tcp) // takes off what it has written
		if err == nil {
			return len(b), nil
		}
		if !g.write.again(err, g.Conn.SetWriteDeadline) {
			return 0, err
		}
	}
}

// sendAside leaves the body of an answer to its connection, where that is right.
func (a *asked) sendAside(ctx *fasthttp.RequestCtx) {
	if a.conn != nil && a.conn.alone && ctx.IsGet() {
		a.conn.body = ctx.Response.Body()
		ctx.Response.SkipBody = true
	}
}

// requestLength is how many bytes a request took.
func requestLength(ctx *fasthttp.RequestCtx) int {
	header := &ctx.Request.Header
	line := len(header.Method()) + len(" ") + len(header.RequestURI()) + len(" ") + len(header.Protocol()) + len("\r\n")
	return line + len(header.RawHeaders()) + len(ctx.Request.Body())
}
