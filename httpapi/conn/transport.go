package conn

import (
	"io"
	"net"

	"github.com/valyala/fasthttp"
)

// transport is a connection that sends a body without copying it. The library copies head and body into one buffer and
// writes that, in pieces if the buffer is small. Here the body is queued, and written after the head in one system
// call.
//
// That is correct only if the head is the next thing that the library writes and nothing follows it before a flush:
// there is no earlier answer in the buffer, and the client has sent nothing after this request. The server's reads show
// both: when it reads with its whole buffer, it has used up all earlier bytes and written all answers. So a body can be
// queued only for the first request after such a read, if nothing follows the request. In all other cases the library
// sends the answer in its own way.
type transport struct {
	lazyDeadlines
	framing framingCheck
	tcp     *net.TCPConn
	tls     *tlsConn // nil without TLS

	readBufferBytes              int               // size of the server's buffer, known from its first Read
	prefetched                   int               // bytes that the next Read finds in its buffer already
	receivedBytes, consumedBytes int               // bytes given to the server since it had last used up all, and those of its requests
	lastTwoBytes                 uint16            // the last two bytes given to the server
	firstInRead                  bool              // the present request is the first since the server had used up all
	onlyInRead                   bool              // and nothing follows it: its body can be queued
	read                         []byte            // the last read if it was the first since the server had used up all; borrowed
	request                      []byte            // see Conn.Request; borrowed
	queuedBody                   []byte            // to be sent after the next bytes written
	firstRequest                 []byte            // bytes of the first request that the server has not read yet
	rounds                       *schedulingRounds // nil: the connection does not yield
	yields                       int               // answers not yet reported to rounds
	shedder                      *LoadShedder      // nil: load is not shed
	parts                        [2][]byte
	vector                       net.Buffers
}

// lineEnd is CR LF as lastTwoBytes.
const lineEnd = '\r'<<8 | '\n'

// receive reads bytes of the client: first those that were read in advance.
func (g *transport) receive(b []byte) (int, error) {
	if g.framing.deferred != nil {
		g.framing.parseDeferred()
	}
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

// deliver notes the bytes that the server gets from Read.
func (g *transport) deliver(b []byte, err error) (int, error) {
	switch {
	case len(g.firstRequest) > 0: // framing has parsed it
		if g.firstRequest = g.firstRequest[len(b):]; len(g.firstRequest) == 0 {
			g.firstRequest = nil
		}
	case len(b) > 0:
		g.framing.observe(b, g.receivedBytes == 0)
	case err == io.EOF && g.framing.midRequest(): //nolint:errorlint // Read returns it unwrapped, and must pass it on so
		// At io.EOF the library would close the connection without writing the answers in its buffer.
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

// BeginRequest notes that the server begins to answer a request of this length (RequestLength). The length may be too
// small. It is one byte too large if the request line ends in a bare LF; lastTwoBytes then shows that the last byte is
// not the request's.
func (g *transport) BeginRequest(length int) {
	g.firstInRead = g.consumedBytes == 0
	g.onlyInRead = g.firstInRead && g.receivedBytes == length && g.lastTwoBytes == lineEnd
	if g.request = nil; g.consumedBytes+length <= len(g.read) {
		g.request = g.read[g.consumedBytes : g.consumedBytes+length]
	}
	g.consumedBytes += length
	g.framing.requestParsed(g.onlyInRead)
}

// Write implements net.Conn. After an answer the server reads at once, before the client can have sent its next
// request, and the goroutine would have to wait. So Write lets other goroutines run first: always with one processor,
// otherwise under load.
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
		// The client does not read its answer; without this the kernel would keep the unsent bytes after Close.
		_ = g.tcp.SetLinger(0)
	}
	if g.rounds != nil {
		g.rounds.yield(g.shedder.yieldsPerRound(), &g.yields)
	}
	return n, err
}

// writeHeadAndBody writes b and the queued body.
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

// QueueBody queues a body to be sent after the next bytes written, without a copy. If it returns false, the body was
// not queued and must be written.
func (c *Conn) QueueBody(body []byte) bool {
	if c.tcp == nil || c.tls != nil || !c.onlyInRead {
		return false
	}
	c.queuedBody = body
	return true
}

// DiscardBody removes the body that QueueBody queued, for another answer.
func (c *Conn) DiscardBody() { c.queuedBody = nil }

// RequestLength returns the length of a request in bytes.
func RequestLength(ctx *fasthttp.RequestCtx) int {
	header := &ctx.Request.Header
	line := len(header.Method()) + len(" ") + len(header.RequestURI()) + len(" ") + len(header.Protocol()) + len("\r\n")
	return line + len(header.RawHeaders()) + len(ctx.Request.Body())
}
