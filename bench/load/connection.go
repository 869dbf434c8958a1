//go:build linux

package load

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

type connState uint8

const (
	connClosed  connState = iota // no socket; with Generator.Reconnects a client stays in this state
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
	inIdle         bool          // the connection is in Generator.idle
	counted        bool          // the outstanding request is counted in Results
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
func (g *Generator) dial(c *connection) error {
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
	return g.watch(c, unix.EPOLL_CTL_ADD, unix.EPOLLOUT)
}

func (g *Generator) watch(c *connection, operation int, interest uint32) error {
	return unix.EpollCtl(g.epollFD, operation, c.socket, &unix.EpollEvent{Events: interest, Fd: int32(c.number)})
}

// handle processes an epoll event of a connection.
func (g *Generator) handle(c *connection) error {
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
	if err := g.watch(c, unix.EPOLL_CTL_MOD, unix.EPOLLIN); err != nil {
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

// nextRequest is called for a connection that can send a request. In a closed loop (see Generator.Rate) it sends the
// next request at once. In an open loop it adds the connection to the idle connections. When a request is due, sendDue
// takes a connection from these.
func (g *Generator) nextRequest(c *connection, now time.Duration) error {
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

// takeIdle removes the first usable connection from the idle connections and returns it, or nil if there is none. It
// skips connections that were lost in the meantime: nextRequest adds them again when they are reconnected.
func (g *Generator) takeIdle() *connection {
	for {
		select {
		case c := <-g.idle:
			c.inIdle = false
			if c.state == connIdle || g.Reconnects && c.state == connClosed {
				return c
			}
		default:
			return nil
		}
	}
}

// dueAt returns when the next request is due.
func (g *Generator) dueAt() time.Duration {
	return g.scheduleStart + time.Duration(float64(g.nextNumber)/g.Rate*float64(time.Second))
}

// sendDue sends the requests that are due at the time now, on idle connections.
func (g *Generator) sendDue(now time.Duration) error {
	for g.Rate > 0 && g.scheduleStart > 0 {
		due := g.dueAt()
		if due > now || due >= g.measureEnd {
			return nil
		}
		c := g.takeIdle()
		if c == nil {
			return nil
		}
		g.nextNumber++
		if err := g.issue(c, due, due >= g.measureStart); err != nil {
			return err
		}
	}
	return nil
}

// issue sends a request on a connection. If the client opens a new connection for each request (Generator.Reconnects),
// issue opens it first.
func (g *Generator) issue(c *connection, due time.Duration, counted bool) error {
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

func (g *Generator) send(c *connection) error {
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
func (g *Generator) receive(c *connection) error {
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
func (g *Generator) count(c *connection) error {
	now := g.now()
	g.inFlight--
	g.responses++
	g.consecutiveLosses, c.state = 0, connIdle
	if c.counted {
		c.counted = false
		g.countedInFlight--
		g.Results.Responses += g.Pipeline
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

// dropConnection counts the outstanding request of a connection as lost and reconnects. It returns ErrTargetGone after
// too many losses without a response between them.
func (g *Generator) dropConnection(c *connection, cause error) error {
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
			ErrTargetGone, g.consecutiveLosses, g.responses, cause)
	}
	return g.reconnect(c)
}

// reconnect closes a connection and opens a new one. For a client that opens a connection for each request
// (Generator.Reconnects), it leaves the opening to the next request.
func (g *Generator) reconnect(c *connection) error {
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
