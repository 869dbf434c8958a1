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
	connClosed  connState = iota // of a reconnecting client between requests
	connDialing                  // being connected
	connIdle                     // no request outstanding
	connWaiting                  // a request is outstanding
)

// connection is the connection of one client, and its successors.
type connection struct {
	*clients
	number, socket int
	tls            *tls.Conn     // nil without TLS
	source         unix.Sockaddr // nil lets the kernel choose
	state          connState
	inIdle         bool          // it is in the idle channel
	counted        bool          // the request belongs to the measured time
	startedAt      time.Duration // latency is measured from here
	request        []byte
	received       int // bytes of the response so far
	parser         responseParser
}

// Reasons to drop a connection.
var (
	errClosed      = errors.New("connection closed before the response")
	errUnsolicited = errors.New("data without a request")
	errShortWrite  = errors.New("request only partly written")
)

// dial opens a connection.
func (l *load) dial(c *connection) error {
	socket, err := unix.Socket(l.family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return fmt.Errorf("open a socket: %w", err)
	}
	c.socket, c.state = socket, connDialing
	c.parser.reset(c.pipeline - 1)
	l.dialling++
	// A request is one write; Nagle's algorithm would only delay it.
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
	return unix.EpollCtl(l.epoll, operation, c.socket, &unix.EpollEvent{Events: interest, Fd: int32(c.number)})
}

// handle processes an event of a connection.
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
	case l.base == 0: // not started yet
		return nil
	}
	return l.nextRequest(c, l.now())
}

// nextRequest sends the next request of a connection, or queues the connection until one is due.
func (l *load) nextRequest(c *connection, now time.Duration) error {
	if c.rate == 0 {
		if now >= l.closes {
			return nil
		}
		return l.issue(c, now, now >= l.opens)
	}
	if !c.inIdle {
		c.inIdle = true
		c.idle <- c // it has room for all connections of the clients
	}
	return nil
}

// takeIdle takes the first idle connection, nil if there is none. A connection that was lost meanwhile queues again.
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

// dueAt returns when the next request of clients is due.
func (l *load) dueAt(g *clients) time.Duration {
	return l.base + g.startAfter + time.Duration(float64(g.next)/g.rate*float64(time.Second))
}

// sendDue sends the requests that are due, as far as connections are idle. The others wait or are dropped.
func (l *load) sendDue(now time.Duration) error {
	for _, g := range l.groups {
		for g.rate > 0 && l.base > 0 {
			moment := l.dueAt(g)
			if moment > now || moment >= l.closes {
				break
			}
			c := g.takeIdle()
			if c == nil && !g.dropLate {
				break
			}
			g.next++
			if c == nil {
				if moment >= l.opens {
					g.intended++
					g.dropped++
				}
				continue
			}
			if err := l.issue(c, moment, moment >= l.opens); err != nil {
				return err
			}
		}
	}
	return nil
}

// issue sends the next request on a connection, which a reconnecting client opens first.
func (l *load) issue(c *connection, since time.Duration, counted bool) error {
	c.startedAt, c.counted = since, counted
	if counted {
		c.intended += c.pipeline
		c.sent += c.pipeline
		l.outstanding++
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
	l.waiting++
	n, err := c.write(c.request)
	if err == nil && n < len(c.request) {
		err = errShortWrite // requests are short, and the socket's buffer is empty
	}
	if err != nil {
		return l.dropConnection(c, err)
	}
	return nil
}

// receive reads what has arrived, up to the end of a response. TLS may have buffered more than one read returns.
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

// count counts a response and continues. Its time is also that of the next request, so that the clock is read once.
func (l *load) count(c *connection, piece []byte) error {
	now := l.now()
	l.waiting--
	l.answered++
	l.lostInARow, c.state = 0, connIdle
	if c.counted {
		c.counted = false
		l.outstanding--
		c.results.count(c, piece, now)
	}
	if c.parser.closes || c.reconnects {
		return l.reconnect(c)
	}
	c.parser.reset(c.pipeline - 1)
	return l.nextRequest(c, now)
}

func (t *results) count(c *connection, piece []byte, now time.Duration) {
	t.answers += c.pipeline
	t.bytes += uint64(c.received)
	t.lastAnswer = now
	switch status := c.parser.status; {
	case c.unexpected != nil && c.unexpected(status, piece):
		if t.unexpectedCount++; t.firstUnexpected == "" {
			t.firstUnexpected = fmt.Sprintf("%.600q", piece)
		}
	default:
		if t.statuses[status] += c.pipeline; status == 200 {
			_ = t.latency.RecordValue(int64(min(max(now-c.startedAt, 1), latencyRange))) // no error within the range
		}
	}
}

// dropConnection gives a connection up, with its outstanding request, and reconnects, unless too many were lost in a
// row.
func (l *load) dropConnection(c *connection, why error) error {
	switch c.state {
	case connWaiting:
		l.waiting--
	case connDialing:
		l.dialling--
	}
	if c.counted {
		c.counted = false
		l.outstanding--
		c.lost += c.pipeline
	}
	l.lostInARow++
	if limit := 100 + 2*len(l.conns); l.lostInARow > limit {
		return fmt.Errorf("%w: %d connections in a row ended without a response (after %d responses), the last because of: %w",
			errGone, l.lostInARow, l.answered, why)
	}
	return l.reconnect(c)
}

// reconnect closes a connection and opens the next one; a reconnecting client does so with its next request.
func (l *load) reconnect(c *connection) error {
	_ = unix.Close(c.socket) // an error was reported by the read before
	c.socket, c.tls, c.state = -1, nil, connClosed
	if !c.reconnects {
		return l.dial(c)
	}
	c.parser.reset(c.pipeline - 1)
	return l.nextRequest(c, l.now())
}

// handshake makes a TLS connection, which blocks the load, but only at its beginning.
func (c *connection) handshake(config *tls.Config) error {
	c.tls = tls.Client(rawSocket{fd: c.socket}, config)
	return errors.Join(unix.SetNonblock(c.socket, false), c.tls.Handshake(), unix.SetNonblock(c.socket, true))
}

func (c *connection) read(into []byte) (int, error) {
	if c.tls == nil {
		return unix.Read(c.socket, into)
	}
	n, err := c.tls.Read(into)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

func (c *connection) write(text []byte) (int, error) {
	if c.tls == nil {
		return unix.Write(c.socket, text)
	}
	return c.tls.Write(text)
}

// rawSocket is a socket as crypto/tls reads and writes it. A read that would block returns EAGAIN, which is temporary
// to crypto/tls and may be repeated. The other methods of net.Conn are not called.
type rawSocket struct {
	net.Conn
	fd int
}

func (s rawSocket) Read(into []byte) (int, error) {
	n, err := unix.Read(s.fd, into)
	if n == 0 && err == nil {
		err = io.EOF
	}
	return max(n, 0), err
}

func (s rawSocket) Write(text []byte) (int, error) {
	n, err := unix.Write(s.fd, text)
	return max(n, 0), err
}
