package conn

import (
	"io"
	"net"

	"github.com/valyala/fasthttp"
)

// transport is a connection that can send a body from where it lies. The library copies head and body into one buffer
// and writes that, in pieces when it is small; here the body is queued, and leaves with the head in one system call.
//
// That is right only when the head is the next thing to be written and nothing follows it before a flush: the client
// has sent nothing behind this request, and no answer before it waits. Both are known from the reads of the server: it
// reads with its whole buffer when it has used up all that it was handed, and has written every answer by then. So only
// the first request behind such a read counts, when it is all of it. Where the count does not come out the answer is
// sent as the library does, which is never wrong.
type transport struct {
	lazyDeadlines
	framing framingCheck
	tcp     *net.TCPConn
	tls     *tlsConn // nil: what is sent is not encrypted

	readBufferBytes              int               // size of the server's buffer: of its first read
	prefetched                   int               // bytes that lie already where the next read wants them
	receivedBytes, consumedBytes int               // bytes handed to the server since it had used up all, and those of its requests
	lastTwoBytes                 uint16            // the last two bytes that it was handed
	firstInRead                  bool              // the request came behind no other
	onlyInRead                   bool              // the request has nothing behind it, and no answer before it waits
	read                         []byte            // the last read, where it was the first since the server had used up all; borrowed
	request                      []byte            // that the server works on, as far as its place in read can be told; borrowed
	queuedBody                   []byte            // to be sent behind what is written next
	firstRequest                 []byte            // of the first request, for the library to read
	rounds                       *schedulingRounds // nil: it does not yield
	yields                       int               // answers that the rounds were not told of
	shedder                      *LoadShedder      // nil: no request is too old
	parts                        [2][]byte
	vector                       net.Buffers
}

// lineEnd is the ending of whatever ends in CR LF.
const lineEnd = '\r'<<8 | '\n'

// receive reads what the client has said.
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

// deliver notes what the server is handed.
func (g *transport) deliver(b []byte, err error) (int, error) {
	switch {
	case len(g.firstRequest) > 0: // framing knows it
		if g.firstRequest = g.firstRequest[len(b):]; len(g.firstRequest) == 0 {
			g.firstRequest = nil
		}
	case len(b) > 0:
		g.framing.observe(b, g.receivedBytes == 0)
	case err == io.EOF && g.framing.midRequest(): //nolint:errorlint // a Read gives it bare, and is to pass it on so
		// At a plain end the library goes without a word, and takes answers along that it has not written yet.
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

// BeginRequest tells the length of the request that is about to be answered (RequestLength). The length may be too
// small. It is one byte too large after a request line that ends in a bare LF: then lastTwoBytes shows that the last
// byte belongs to something else.
func (g *transport) BeginRequest(length int) {
	g.firstInRead = g.consumedBytes == 0
	g.onlyInRead = g.firstInRead && g.receivedBytes == length && g.lastTwoBytes == lineEnd
	if g.request = nil; g.consumedBytes+length <= len(g.read) {
		g.request = g.read[g.consumedBytes : g.consumedBytes+length]
	}
	g.consumedBytes += length
	g.framing.requestParsed(g.onlyInRead)
}

// Write is net.Conn's. After an answer the server reads at once, before the client can have sent its next request, and
// would have to wait for the connection. So other goroutines run first: always with one processor, otherwise under
// load.
func (g *transport) Write(b []byte) (n int, err error) {
	switch {
	case g.tls != nil:
		n, err = g.tls.write(b)
	case g.queuedBody == nil:
		n, err = g.lazyDeadlines.Write(b)
	default:
		n, err = g.writeHeadAndBody(b)
	}
	if err != nil && err != errNoHandshake && g.tcp != nil { //nolint:errorlint // it is given bare
		// A client that took nothing of an answer in all that time will not take the rest: without this the kernel
		// would keep it.
		_ = g.tcp.SetLinger(0)
	}
	if g.rounds != nil {
		g.rounds.yield(g.shedder.yieldsPerRound(), &g.yields)
	}
	return n, err
}

// writeHeadAndBody writes b and the body behind it.
func (g *transport) writeHeadAndBody(b []byte) (int, error) {
	if err := g.write.arm(g.Conn.SetWriteDeadline); err != nil {
		return 0, err
	}
	g.parts = [2][]byte{b, g.queuedBody}
	g.queuedBody, g.vector = nil, g.parts[:]
	for {
		_, err := g.vector.WriteTo(g.tcp) // takes off what it has written
		if err == nil {
			return len(b), nil
		}
		if !g.write.rearm(err, g.Conn.SetWriteDeadline) {
			return 0, err
		}
	}
}

// QueueBody has a body sent from where it lies, behind what is written next. False: it must be written like any other.
func (c *Conn) QueueBody(body []byte) bool {
	if c.tcp == nil || c.tls != nil || !c.onlyInRead {
		return false
	}
	c.queuedBody = body
	return true
}

// DiscardBody forgets what QueueBody queued: another answer follows.
func (c *Conn) DiscardBody() { c.queuedBody = nil }

// RequestLength is how many bytes a request took.
func RequestLength(ctx *fasthttp.RequestCtx) int {
	header := &ctx.Request.Header
	line := len(header.Method()) + len(" ") + len(header.RequestURI()) + len(" ") + len(header.Protocol()) + len("\r\n")
	return line + len(header.RawHeaders()) + len(ctx.Request.Body())
}
