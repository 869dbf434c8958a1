//go:build linux

package main

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

type connState uint8

const (
	connClosed  connState = iota // no socket; with generator.Reconnects a client stays in this state
	connDialing                  // being opened
	connIdle                     // open, no outstanding request
	connWaiting                  // open, waiting for a response
)

// connection is the current connection of one client.
type connection struct {
	number, socket int
	tls            *tls.Conn     // nil without TLS
	source         unix.Sockaddr // source address; if it is nil, the kernel chooses one
	state          connState
	inIdle         bool          // the connection is in generator.idle
	counted        bool          // the outstanding request is counted in results
	startedAt      time.Duration // time from which the latency of the outstanding request is measured
	request        []byte
	received       int // bytes of the response that have arrived
	parser         responseParser
}

// Causes of a lost connection.
var (
	errClosed      = errors.New("connection closed before the response")
	errUnsolicited = errors.New("data without a request")
	errShortWrite  = errors.New("request only partly written")
)

// dial starts to open a connection. handle continues when the connection is established.
func (g *generator) dial(c *connection) error {
	socket, err := unix.Socket(g.family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return fmt.Errorf("open a socket: %w", err)
	}
	c.socket, c.state = socket, connDialing
	c.parser.reset(g.Pipeline - 1)
	g.dialling++
	// Nagle's algorithm would only delay requests, because each request is a single write.
	if err := unix.SetsockoptInt(socket, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
		return fmt.Errorf("set up a socket: %w", err)
	}
	if c.source != nil {
		_ = unix.SetsockoptInt(socket, unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1) // otherwise bind would reserve a port
		if err := unix.Bind(socket, c.source); err != nil {
			return fmt.Errorf("bind to a source address: %w", err)
		}
	}
	if err := unix.Connect(socket, g.target); err != nil && !errors.Is(err, unix.EINPROGRESS) && !errors.Is(err, unix.EINTR) {
		return g.dropConnection(c, err)
	}
	return unix.EpollCtl(g.epollFD, unix.EPOLL_CTL_ADD, c.socket, &unix.EpollEvent{Events: unix.EPOLLOUT, Fd: int32(c.number)})
}

// handle processes an epoll event of a connection.
func (g *generator) handle(c *connection) error {
	if c.state != connDialing {
		return g.receive(c)
	}
	code, err := unix.GetsockoptInt(c.socket, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && code != 0 {
		err = unix.Errno(code)
	}
	if err != nil {
		return g.dropConnection(c, err)
	}
	if g.TLS != nil {
		if err := c.handshake(g.TLS); err != nil {
			return g.dropConnection(c, err)
		}
	}
	if err := unix.EpollCtl(g.epollFD, unix.EPOLL_CTL_MOD, c.socket, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(c.number)}); err != nil {
		return err
	}
	g.dialling--
	c.state = connIdle
	switch {
	case g.Reconnects:
		return g.send(c)
	case g.scheduleStart == 0: // the load has not started yet
		return nil
	}
	return g.nextRequest(c, g.now())
}

// nextRequest is called for a connection that can send a request. In a closed loop (see generator.Rate) it sends the
// next request at once. In an open loop it adds the connection to the idle connections. When a request is due, sendDue
// takes a connection from these.
func (g *generator) nextRequest(c *connection, now time.Duration) error {
	if g.Rate == 0 {
		if now >= g.measureEnd {
			return nil
		}
		return g.issue(c, now, now >= g.measureStart)
	}
	if !c.inIdle {
		c.inIdle = true
		g.idle <- c // does not block: the channel has room for all connections
	}
	return nil
}

// dueAt returns when the next request is due.
func (g *generator) dueAt() time.Duration {
	return g.scheduleStart + time.Duration(float64(g.nextNumber)/g.Rate*float64(time.Second))
}

// sendDue sends the requests that are due at the time now, on idle connections. It skips connections that were lost in
// the meantime: nextRequest adds them again when they are reconnected.
func (g *generator) sendDue(now time.Duration) error {
	for g.Rate > 0 && g.scheduleStart > 0 && len(g.idle) > 0 {
		due := g.dueAt()
		if due > now || due >= g.measureEnd {
			return nil
		}
		c := <-g.idle
		c.inIdle = false
		if c.state != connIdle && !(g.Reconnects && c.state == connClosed) {
			continue
		}
		g.nextNumber++
		if err := g.issue(c, due, due >= g.measureStart); err != nil {
			return err
		}
	}
	return nil
}

// issue sends a request on a connection. If the client opens a new connection for each request (generator.Reconnects),
// issue opens it first.
func (g *generator) issue(c *connection, due time.Duration, counted bool) error {
	c.startedAt, c.counted = due, counted
	if counted {
		g.Intended += g.Pipeline
		g.Sent += g.Pipeline
		g.countedInFlight++
	}
	if g.Reconnects {
		return g.dial(c)
	}
	return g.send(c)
}

func (g *generator) send(c *connection) error {
	c.request = c.request[:0]
	for range g.Pipeline {
		c.request = g.Requests.Next(c.request, g.random)
	}
	c.state, c.received = connWaiting, 0
	g.inFlight++
	n, err := c.write(c.request)
	if err == nil && n < len(c.request) {
		err = errShortWrite // unlikely: requests are short, and the socket's buffer is empty
	}
	if err != nil {
		return g.dropConnection(c, err)
	}
	return nil
}

// receive reads the data that has arrived, up to the end of a response. With TLS it reads until EAGAIN, because one
// read may leave data in the buffer of crypto/tls.
func (g *generator) receive(c *connection) error {
	for {
		n, err := c.read(g.buffer)
		switch {
		case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
			return nil
		case err != nil:
			return g.dropConnection(c, err)
		case n == 0:
			return g.dropConnection(c, errClosed)
		case c.state != connWaiting:
			return g.dropConnection(c, errUnsolicited)
		}
		c.received += n
		complete, err := c.parser.feed(g.buffer[:n])
		switch {
		case err != nil:
			return g.dropConnection(c, err)
		case complete:
			return g.count(c)
		case c.tls == nil:
			return nil
		}
	}
}

// count counts the response that a connection has received, and makes the connection ready for its next request.
func (g *generator) count(c *connection) error {
	now := g.now()
	g.inFlight--
	g.responses++
	g.consecutiveLosses, c.state = 0, connIdle
	if c.counted {
		c.counted = false
		g.countedInFlight--
		g.Responses += g.Pipeline
		g.Bytes += uint64(c.received)
		g.lastResponse = now
		if g.Statuses[c.parser.status] += g.Pipeline; c.parser.status == 200 {
			_ = g.Latency.RecordValue(int64(min(max(now-c.startedAt, 1), latencyLimit))) // cannot fail: at most latencyLimit
		}
	}
	if c.parser.closeAfter || g.Reconnects {
		return g.reconnect(c)
	}
	c.parser.reset(g.Pipeline - 1)
	return g.nextRequest(c, now)
}

// dropConnection counts the outstanding request of a connection as lost and reconnects. It returns errTargetGone after
// too many losses without a response between them.
func (g *generator) dropConnection(c *connection, cause error) error {
	switch c.state {
	case connWaiting:
		g.inFlight--
	case connDialing:
		g.dialling--
	}
	if c.counted {
		c.counted = false
		g.countedInFlight--
		g.Lost += g.Pipeline
	}
	g.consecutiveLosses++
	if limit := 100 + 2*len(g.conns); g.consecutiveLosses > limit {
		return fmt.Errorf("%w: %d connections in a row ended without a response (after %d responses), the last because of: %w",
			errTargetGone, g.consecutiveLosses, g.responses, cause)
	}
	return g.reconnect(c)
}

// reconnect closes a connection and opens a new one. For a client that opens a connection for each request
// (generator.Reconnects), it leaves the opening to the next request.
func (g *generator) reconnect(c *connection) error {
	_ = unix.Close(c.socket) // an error is irrelevant: the connection is not used any more
	c.socket, c.tls, c.state = -1, nil, connClosed
	if !g.Reconnects {
		return g.dial(c)
	}
	c.parser.reset(g.Pipeline - 1)
	return g.nextRequest(c, g.now())
}

// handshake performs the TLS handshake. All other connections wait meanwhile. This distorts no latency as long as
// connections are opened before the measured time.
func (c *connection) handshake(config *tls.Config) error {
	c.tls = tls.Client(rawSocket{fd: c.socket}, config)
	return errors.Join(unix.SetNonblock(c.socket, false), c.tls.Handshake(), unix.SetNonblock(c.socket, true))
}

func (c *connection) read(p []byte) (int, error) {
	if c.tls == nil {
		return unix.Read(c.socket, p)
	}
	n, err := c.tls.Read(p)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

func (c *connection) write(p []byte) (int, error) {
	if c.tls == nil {
		return unix.Write(c.socket, p)
	}
	return c.tls.Write(p)
}

// rawSocket is a non-blocking socket for crypto/tls, which calls only Read and Write of net.Conn. Read and Write return
// EAGAIN instead of blocking. EAGAIN is a temporary error, so crypto/tls allows another read after it.
type rawSocket struct {
	net.Conn
	fd int
}

func (s rawSocket) Read(p []byte) (int, error) {
	n, err := unix.Read(s.fd, p)
	if n == 0 && err == nil {
		err = io.EOF
	}
	return max(n, 0), err
}

func (s rawSocket) Write(p []byte) (int, error) {
	n, err := unix.Write(s.fd, p)
	return max(n, 0), err
}

// headBytesMax is the largest size of the head of a response (status line and header fields).
const headBytesMax = 16 << 10

// Errors of responseParser.feed. Chunked responses and responses without Content-Length are rejected, because no server
// that is measured should send them.
var (
	errHead   = errors.New("no HTTP/1.1 response head within 16 KiB, with a status and one Content-Length")
	errExcess = errors.New("more than one response to one request")
)

// responseParser parses responses from a byte stream in pieces of any size. The zero value is ready to use. The parser
// does not keep the pieces. It allocates only for a head that arrives in several pieces.
type responseParser struct {
	status     int
	closeAfter bool // the server closes the connection after this response

	following uint64 // number of pipelined responses that are expected after the current one
	head      []byte // beginning of a head whose end has not arrived yet
	inBody    bool
	bodyLeft  int // bytes of the body not yet received
}

// feed parses the next piece of the stream and reports whether all expected responses are complete. status and
// closeAfter are then valid until reset. status is 200 if all responses have status 200, otherwise the first other
// status. The parser cannot be used after an error.
func (p *responseParser) feed(piece []byte) (complete bool, err error) {
	for {
		if !p.inBody {
			if len(p.head) > 0 {
				p.head = append(p.head, piece...)
				piece = p.head
			}
			end := bytes.Index(piece, []byte("\r\n\r\n"))
			switch {
			case end < 0 && len(piece) < headBytesMax:
				p.head = append(p.head[:0], piece...)
				return false, nil
			case end < 0 || end > headBytesMax || !p.parseHead(piece[:end]):
				return false, errHead
			}
			p.inBody, piece = true, piece[end+4:]
		}
		if len(piece) < p.bodyLeft {
			p.bodyLeft -= len(piece)
			return false, nil
		}
		piece = piece[p.bodyLeft:]
		p.bodyLeft = 0
		switch {
		case p.following == 0 && len(piece) > 0:
			return false, errExcess
		case p.following == 0:
			return true, nil
		}
		p.following--
		p.inBody, p.head = false, p.head[:0]
	}
}

// reset prepares the parser for one response and as many pipelined responses after it as following says.
func (p *responseParser) reset(following uint64) {
	*p = responseParser{head: p.head[:0], following: following}
}

// parseHead parses a complete head, without the empty line at its end, and reports whether it is valid.
func (p *responseParser) parseHead(head []byte) bool {
	line, rest, _ := bytes.Cut(head, []byte("\r\n"))
	if len(line) < len("HTTP/1.1 200") || string(line[:7]) != "HTTP/1." || line[8] != ' ' || len(line) > 12 && line[12] != ' ' {
		return false
	}
	status, err := strconv.Atoi(string(line[9:12]))
	if err != nil || status < 200 {
		return false
	}
	if p.status <= 200 {
		p.status = status
	}
	p.closeAfter, p.bodyLeft = line[7] == '0', -1
	for len(rest) > 0 {
		line, rest, _ = bytes.Cut(rest, []byte("\r\n"))
		if first := line[:min(1, len(line))]; string(first) != "C" && string(first) != "c" && string(first) != "T" && string(first) != "t" {
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			length, err := strconv.ParseUint(string(value), 10, 40)
			if err != nil || p.bodyLeft >= 0 {
				return false
			}
			p.bodyLeft = int(length)
		case bytes.EqualFold(name, []byte("Connection")):
			p.closeAfter = bytes.EqualFold(value, []byte("close")) || p.closeAfter && !bytes.EqualFold(value, []byte("keep-alive"))
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			return false
		}
	}
	if status == 204 || status == 304 {
		p.bodyLeft = 0
	}
	return p.bodyLeft >= 0
}
