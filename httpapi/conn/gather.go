package conn

import (
	"io"
	"net"

	"github.com/valyala/fasthttp"
)

// gatherer is a connection of TCP that can send a body from where it lies. The library copies head and body into one buffer and writes
// that, in pieces when it is small; here the body is kept aside, and goes out with the head in one system call.
//
// That is right only when the head is the next thing to be written and nothing follows it before a flush: when the client has sent
// nothing behind this request, and no answer before it waits. Both are known from how the server reads: with its whole buffer when it
// has used up all it was handed, and by then it has written every answer. So only the first request behind such a read counts, when it
// took all that came since. Where the count does not come out the answer is sent as the library would, which is never wrong.
type gatherer struct {
	lazyDeadlines
	wire wire
	tcp  *net.TCPConn
	tls  *secured // nil: what is sent is not encrypted

	buffer          int       // size of the server's buffer: of its first read
	ahead           int       // bytes that lie already where the next read wants them
	received, taken int       // bytes handed to the server since it had used up all, and those of its requests
	ending          uint16    // the last two bytes that it was handed
	first           bool      // the request came behind no other
	alone           bool      // the request has nothing behind it, and no answer before it waits
	body            []byte    // to be sent behind what is written next
	early           []byte    // of the first request, for the library to read
	rounds          *rounds   // nil: nobody gives way
	overload        *Overload // nil: no request is too old
	parts           [2][]byte
	vector          net.Buffers
}

// lineEnd is the ending of whatever ends in CR LF.
const lineEnd = '\r'<<8 | '\n'

// Read is net.Conn's.
func (g *gatherer) Read(b []byte) (int, error) {
	if g.wire.unread != nil {
		g.wire.catchUp()
	}
	if g.buffer == 0 {
		g.buffer = len(b)
	}
	if len(b) >= g.buffer {
		g.received, g.taken = 0, 0
	}
	if len(g.early) > 0 { // the wire was told
		n := copy(b, g.early)
		if g.early = g.early[n:]; len(g.early) == 0 {
			g.early = nil
		}
		g.note(b[:n])
		return n, nil
	}
	n, err := g.hand(b)
	if n > 0 {
		g.wire.received(b[:n], g.received == 0)
	} else if err == io.EOF && g.wire.within() { //nolint:errorlint // a Read gives it bare, and is to pass it on so
		// At a plain end the library goes without a word, and takes answers along that it has not written yet.
		err = io.ErrUnexpectedEOF
	}
	g.note(b[:n])
	return n, err
}

// note counts what the server is handed.
func (g *gatherer) note(b []byte) {
	g.received += len(b)
	for _, c := range b[max(0, len(b)-2):] {
		g.ending = g.ending<<8 | uint16(c)
	}
}

// hand reads what the client has said.
func (g *gatherer) hand(b []byte) (int, error) {
	if g.tls != nil {
		return g.tls.read(b)
	}
	if n := g.ahead; n > 0 {
		g.ahead = 0
		return n, nil
	}
	return g.lazyDeadlines.Read(b)
}

// Begin tells the length of the request that is about to be answered (RequestLength). It may be too small, and then never comes out. By one
// byte it is too large after a request line that ends in a bare LF: then the one byte behind the request would be the end of a CR LF, but it
// follows one.
func (g *gatherer) Begin(length int) {
	g.first = g.taken == 0
	g.alone = g.first && g.received == length && g.ending == lineEnd
	g.taken += length
	g.wire.begin(g.alone)
}

// Write is net.Conn's. Behind an answer the server reads at once, long before the client can have asked again: the read finds nothing,
// and the connection has to be waited for. So the others go first, on one processor always, elsewhere under load: the next request is there
// then.
func (g *gatherer) Write(b []byte) (n int, err error) {
	switch {
	case g.tls != nil:
		n, err = g.tls.write(b)
	case g.body == nil:
		n, err = g.lazyDeadlines.Write(b)
	default:
		n, err = g.writeBoth(b)
	}
	if err != nil && err != errUnheard && g.tcp != nil { //nolint:errorlint // it is given bare
		// Whoever took nothing of an answer in all the time there was will not take the rest: without this the kernel would keep it.
		_ = g.tcp.SetLinger(0)
	}
	if g.rounds != nil {
		g.rounds.giveWay(g.overload.roundEach())
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

// SendAside has a body sent behind what is written next, from where it lies, where that is right; false: it is to be written like any other.
func (c *Conn) SendAside(body []byte) bool {
	if c.tcp == nil || c.tls != nil || !c.alone {
		return false
	}
	c.body = body
	return true
}

// DropAside forgets what SendAside left: the answer is to be another one.
func (c *Conn) DropAside() { c.body = nil }

// RequestLength is how many bytes a request took.
func RequestLength(ctx *fasthttp.RequestCtx) int {
	header := &ctx.Request.Header
	line := len(header.Method()) + len(" ") + len(header.RequestURI()) + len(" ") + len(header.Protocol()) + len("\r\n")
	return line + len(header.RawHeaders()) + len(ctx.Request.Body())
}
