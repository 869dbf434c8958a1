//go:build linux

package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// connState is the state of a connection.
type connState uint8

const (
	connClosed  connState = iota // without a socket, between requests of a client that reconnects
	connDialing                  // connecting
	connIdle                     // without an outstanding request
	connWaiting                  // with an outstanding request
)

// connection is the current connection of one client.
type connection struct {
	*clients
	number, socket int
	tls            *tls.Conn     // nil without TLS
	source         unix.Sockaddr // nil lets the kernel choose
	state          connState
	inIdle         bool          // it is in the idle channel
	counted        bool          // the outstanding request was due in the measured time
	startedAt      time.Duration // latency is measured from here
	request        []byte
	received       int // bytes of the response so far
	parser         responseParser
}

// Causes of a lost connection.
var (
	errClosed      = errors.New("connection closed before the response")
	errUnsolicited = errors.New("data without a request")
	errShortWrite  = errors.New("request only partly written")
)

// dial starts to open a connection.
func (l *load) dial(c *connection) error {
	socket, err := unix.Socket(l.family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return fmt.Errorf("open a socket: %w", err)
	}
	c.socket, c.state = socket, connDialing
	c.parser.reset(c.pipeline - 1)
	l.dialling++
	// Each request is one write, which Nagle's algorithm would only delay.
	if err := unix.SetsockoptInt(socket, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
		return fmt.Errorf("set up a socket: %w", err)
	}
	if c.source != nil {
		_ = unix.SetsockoptInt(socket, unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1) // without it fewer ports are available
		if err := unix.Bind(socket, c.source); err != nil {
			return fmt.Errorf("bind to a source address: %w", err)
		}
	}
	if err := unix.Connect(socket, l.target); err != nil && !errors.Is(err, unix.EINPROGRESS) && !errors.Is(err, unix.EINTR) {
		return l.dropConnection(c, err)
	}
	return l.watch(c, unix.EPOLL_CTL_ADD, unix.EPOLLOUT)
}

func (l *load) watch(c *connection, operation int, interest uint32) error {
	return unix.EpollCtl(l.epollFD, operation, c.socket, &unix.EpollEvent{Events: interest, Fd: int32(c.number)})
}

// handle processes an epoll event of a connection.
func (l *load) handle(c *connection) error {
	if c.state != connDialing {
		return l.receive(c)
	}
	code, err := unix.GetsockoptInt(c.socket, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && code != 0 {
		err = unix.Errno(code)
	}
	if err != nil {
		return l.dropConnection(c, err)
	}
	if l.tls != nil {
		if err := c.handshake(l.tls); err != nil {
			return l.dropConnection(c, err)
		}
	}
	if err := l.watch(c, unix.EPOLL_CTL_MOD, unix.EPOLLIN); err != nil {
		return err
	}
	l.dialling--
	c.state = connIdle
	switch {
	case c.reconnects:
		return l.send(c)
	case l.scheduleStart == 0: // not started yet
		return nil
	}
	return l.nextRequest(c, l.now())
}

// nextRequest sends the next request of a connection, or queues the connection until one is due.
func (l *load) nextRequest(c *connection, now time.Duration) error {
	if c.rate == 0 {
		if now >= l.measureEnd {
			return nil
		}
		return l.issue(c, now, now >= l.measureStart)
	}
	if !c.inIdle {
		c.inIdle = true
		c.idle <- c // does not block: the channel has room for all connections
	}
	return nil
}

// takeIdle takes the first idle connection, nil if there is none. It discards connections that were lost while idle;
// they return after reconnecting.
func (g *clients) takeIdle() *connection {
	for {
		select {
		case c := <-g.idle:
			c.inIdle = false
			if c.state == connIdle || c.reconnects && c.state == connClosed {
				return c
			}
		default:
			return nil
		}
	}
}

// dueAt returns when the next request of a group is due.
func (l *load) dueAt(g *clients) time.Duration {
	return l.scheduleStart + g.startAfter + time.Duration(float64(g.nextNumber)/g.rate*float64(time.Second))
}

// sendDue sends due requests on idle connections. Without an idle connection a request waits, or is dropped (dropLate).
func (l *load) sendDue(now time.Duration) error {
	for _, g := range l.groups {
		for g.rate > 0 && l.scheduleStart > 0 {
			due := l.dueAt(g)
			if due > now || due >= l.measureEnd {
				break
			}
			c := g.takeIdle()
			if c == nil && !g.dropLate {
				break
			}
			g.nextNumber++
			if c == nil {
				if due >= l.measureStart {
					g.intended++
					g.dropped++
				}
				continue
			}
			if err := l.issue(c, due, due >= l.measureStart); err != nil {
				return err
			}
		}
	}
	return nil
}

// issue sends the next request on a connection, after opening it for a client that reconnects.
func (l *load) issue(c *connection, due time.Duration, counted bool) error {
	c.startedAt, c.counted = due, counted
	if counted {
		c.intended += c.pipeline
		c.sent += c.pipeline
		l.countedInFlight++
	}
	if c.reconnects {
		return l.dial(c)
	}
	return l.send(c)
}

func (l *load) send(c *connection) error {
	c.request = c.request[:0]
	for range c.pipeline {
		c.request = c.requests.next(c.request, l.random)
	}
	c.state, c.received = connWaiting, 0
	l.inFlight++
	n, err := c.write(c.request)
	if err == nil && n < len(c.request) {
		err = errShortWrite // unlikely: requests are short, and the socket's buffer is empty
	}
	if err != nil {
		return l.dropConnection(c, err)
	}
	return nil
}

// receive reads the data that has arrived, up to the end of a response. With TLS it reads until EAGAIN, because
// crypto/tls may buffer more than one read returns.
func (l *load) receive(c *connection) error {
	for {
		n, err := c.read(l.buffer)
		switch {
		case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
			return nil
		case err != nil:
			return l.dropConnection(c, err)
		case n == 0:
			return l.dropConnection(c, errClosed)
		case c.state != connWaiting:
			return l.dropConnection(c, errUnsolicited)
		}
		c.received += n
		complete, err := c.parser.feed(l.buffer[:n])
		switch {
		case err != nil:
			return l.dropConnection(c, err)
		case complete:
			return l.count(c, l.buffer[:n])
		case c.tls == nil:
			return nil
		}
	}
}

// count counts a response and sends the next request. It reads the clock once for both.
func (l *load) count(c *connection, body []byte) error {
	now := l.now()
	l.inFlight--
	l.answerCount++
	l.consecutiveLosses, c.state = 0, connIdle
	if c.counted {
		c.counted = false
		l.countedInFlight--
		c.results.count(c, body, now)
	}
	if c.parser.closeAfter || c.reconnects {
		return l.reconnect(c)
	}
	c.parser.reset(c.pipeline - 1)
	return l.nextRequest(c, now)
}

func (t *results) count(c *connection, body []byte, now time.Duration) {
	t.answers += c.pipeline
	t.bytes += uint64(c.received)
	t.lastAnswer = now
	switch status := c.parser.status; {
	case c.isUnexpected != nil && c.isUnexpected(status, body):
		if t.unexpectedCount++; t.firstUnexpected == "" {
			t.firstUnexpected = fmt.Sprintf("%.600q", body)
		}
	default:
		if t.statuses[status] += c.pipeline; status == 200 {
			_ = t.latency.RecordValue(int64(min(max(now-c.startedAt, 1), latencyLimit))) // no error up to latencyLimit
		}
	}
}

// dropConnection counts the outstanding request of a connection as lost and reconnects. Too many consecutive losses are
// an error.
func (l *load) dropConnection(c *connection, cause error) error {
	switch c.state {
	case connWaiting:
		l.inFlight--
	case connDialing:
		l.dialling--
	}
	if c.counted {
		c.counted = false
		l.countedInFlight--
		c.lost += c.pipeline
	}
	l.consecutiveLosses++
	if limit := 100 + 2*len(l.conns); l.consecutiveLosses > limit {
		return fmt.Errorf("%w: %d connections in a row ended without a response (after %d responses), the last because of: %w",
			errTargetGone, l.consecutiveLosses, l.answerCount, cause)
	}
	return l.reconnect(c)
}

// reconnect closes a connection and opens a new one. A client that reconnects opens it with its next request.
func (l *load) reconnect(c *connection) error {
	_ = unix.Close(c.socket) // a failed read has reported the error
	c.socket, c.tls, c.state = -1, nil, connClosed
	if !c.reconnects {
		return l.dial(c)
	}
	c.parser.reset(c.pipeline - 1)
	return l.nextRequest(c, l.now())
}

// handshake performs the TLS handshake. It blocks the load, but only before the measured time.
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

// rawSocket adapts a socket to crypto/tls, which calls only Read and Write of net.Conn. A read that would block returns
// EAGAIN, a temporary error: crypto/tls allows another read after it.
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
