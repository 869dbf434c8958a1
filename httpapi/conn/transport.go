package conn

import (
	"io"
	"net"

	"github.com/valyala/fasthttp"
)

// transport is a connection that can send a body without copying it. fasthttp copies head and body into one buffer and
// writes the buffer, in pieces if they do not fit. QueueBody keeps the body out of the buffer: Write sends head and
// body in one system call.
//
// This is correct only if the next Write is exactly the head of the same response. So the buffer must hold no earlier
// response, and the client must not have sent another request yet. The reads show both: when fasthttp reads with its
// whole buffer, it has consumed all earlier bytes and written all earlier responses. So a body can be queued only for
// the first request after such a read, and only if nothing follows the request. fasthttp sends all other bodies.
type transport struct {
	lazyDeadlines
	framing framingCheck
	tcp     *net.TCPConn
	tls     *tlsConn // nil without TLS

	readBufferBytes int // size of fasthttp's read buffer, known from its first Read
	prefetched      int // number of bytes that Conn.prefetch has put in the buffer of the current Read

	// A full read is a Read with fasthttp's whole buffer. It shows that fasthttp has consumed all earlier bytes.
	receivedBytes int    // bytes that fasthttp got since the last full read began
	consumedBytes int    // bytes of the requests that fasthttp parsed since the last full read began
	lastTwoBytes  uint16 // the last two bytes that fasthttp got
	firstInRead   bool   // the current request is the first since the last full read
	onlyInRead    bool   // firstInRead, and no byte follows the request, so the body of its response can be queued
	read          []byte // bytes of the last full read if no Read followed it; fasthttp overwrites them
	request       []byte // raw bytes of the current request, see Conn.Request; fasthttp overwrites them

	queuedBody   []byte            // written after the head of the current response
	firstRequest []byte            // bytes that awaitFirstRequest has read, and fasthttp has not
	rounds       *schedulingRounds // make the connection yield to new requests; nil: it does not yield
	yields       int               // responses not yet reported to rounds
	shedder      *LoadShedder      // rejects requests under overload; nil: none are rejected
	parts        [2][]byte         // head and body of a response in writeHeadAndBody
	vector       net.Buffers       // the part of parts that is not written yet
}

// lineEnd is the value of lastTwoBytes for CR LF.
const lineEnd = '\r'<<8 | '\n'

// receive reads bytes for fasthttp. It returns the bytes of firstRequest or of Conn.prefetch first.
func (g *transport) receive(b []byte) (int, error) {
	if g.readBufferBytes == 0 {
		g.readBufferBytes = len(b)
	}
	if len(b) >= g.readBufferBytes {
		g.receivedBytes, g.consumedBytes = 0, 0
	}
	switch {
	case len(g.firstRequest) > 0:
		return copy(b, g.firstRequest), nil
	case g.tls != nil:
		return g.tls.read(b)
	case g.prefetched > 0:
		n := g.prefetched
		g.prefetched = 0
		return n, nil
	}
	return g.lazyDeadlines.Read(b)
}

// deliver records the bytes that Conn.Read is about to return, for framingCheck and BeginRequest. It returns the result
// of Conn.Read.
func (g *transport) deliver(b []byte, err error) (int, error) {
	switch {
	case len(g.firstRequest) > 0: // awaitFirstRequest has parsed it
		if g.firstRequest = g.firstRequest[len(b):]; len(g.firstRequest) == 0 {
			g.firstRequest = nil
		}
	case len(b) > 0:
		g.framing.observe(b, g.receivedBytes == 0)
	case err == io.EOF && g.framing.midRequest(): //nolint:errorlint // Read returns it unwrapped, and must pass it on so
		// At io.EOF fasthttp would close the connection without writing the responses in its buffer.
		err = io.ErrUnexpectedEOF
	}
	if g.read = nil; g.receivedBytes == 0 {
		g.read = b
	}
	g.receivedBytes += len(b)
	for _, c := range b[max(0, len(b)-2):] {
		g.lastTwoBytes = g.lastTwoBytes<<8 | uint16(c)
	}
	return len(b), err
}

// BeginRequest must be called when the server begins to answer a request. length is the result of RequestLength, which
// may be smaller than the true length. If the request line ends in a bare LF, length is one byte too large.
// lastTwoBytes then prevents the first byte of the next request from being taken for the last byte of this one.
func (g *transport) BeginRequest(length int) {
	g.firstInRead = g.consumedBytes == 0
	g.onlyInRead = g.firstInRead && g.receivedBytes == length && g.lastTwoBytes == lineEnd
	if g.request = nil; g.consumedBytes+length <= len(g.read) {
		g.request = g.read[g.consumedBytes : g.consumedBytes+length]
	}
	g.consumedBytes += length
	g.framing.requestParsed(g.onlyInRead)
}

// Write implements net.Conn. After a response fasthttp reads at once, before the client can have sent its next request,
// and the goroutine would have to wait for the request. So Write lets other goroutines run first: always with a single
// processor, otherwise only under load.
func (g *transport) Write(b []byte) (n int, err error) {
	switch {
	case g.tls != nil:
		n, err = g.tls.write(b)
	case g.queuedBody == nil:
		n, err = g.lazyDeadlines.Write(b)
	default:
		n, err = g.writeHeadAndBody(b)
	}
	if err != nil && err != errNoHandshake && g.tcp != nil { //nolint:errorlint // it is returned unwrapped
		// The client does not read its response. Without SetLinger the kernel would keep the unsent bytes after Close.
		_ = g.tcp.SetLinger(0)
	}
	if g.rounds != nil {
		g.rounds.yield(g.shedder.yieldsPerRound(), &g.yields)
	}
	return n, err
}

// writeHeadAndBody writes b, which is the head of a response, and the queued body.
func (g *transport) writeHeadAndBody(b []byte) (int, error) {
	if err := g.write.arm(g.Conn.SetWriteDeadline); err != nil {
		return 0, err
	}
	g.parts = [2][]byte{b, g.queuedBody}
	g.queuedBody, g.vector = nil, g.parts[:]
	for {
		_, err := g.vector.WriteTo(g.tcp) // removes what it has written from vector
		if err == nil {
			return len(b), nil
		}
		if !g.write.rearm(err, g.Conn.SetWriteDeadline) {
			return 0, err
		}
	}
}

// QueueBody makes the next Write send body after the head of the response, without copying it. If it returns false, the
// body can't be queued, and the server must write it.
func (c *Conn) QueueBody(body []byte) bool {
	if c.tcp == nil || c.tls != nil || !c.onlyInRead {
		return false
	}
	c.queuedBody = body
	return true
}

// DiscardBody removes the body that QueueBody queued, before another response is written instead.
func (c *Conn) DiscardBody() { c.queuedBody = nil }

// RequestLength returns the length of a request in bytes, for BeginRequest.
func RequestLength(ctx *fasthttp.RequestCtx) int {
	header := &ctx.Request.Header
	line := len(header.Method()) + len(" ") + len(header.RequestURI()) + len(" ") + len(header.Protocol()) + len("\r\n")
	return line + len(header.RawHeaders()) + len(ctx.Request.Body())
}
