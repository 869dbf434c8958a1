//go:build linux

package main

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// state is what a line does.
type connState uint8

const (
	connClosed  connState = iota // of a fresh client: it has no connection yet
	connDialing                  // it is being connected
	connIdle                     // nothing is asked on it
	connWaiting                  // a request is under way
)

// awaitLine is one client's connection, and those that take its place when it ends.
type connection struct {
	*clients
	number, socket int
	source         unix.Sockaddr // nil is the kernel's choice
	state          connState
	inIdle         bool          // it stands among the free lines
	counted        bool          // the request is within the measured time
	startedAt      time.Duration // what latency is counted from
	request        []byte
	received       int // bytes of the answer so far
	parser         responseParser
}

// Why a connection is given up.
var (
	errClosed      = errors.New("it ended the connection before its answer")
	errUnsolicited = errors.New("it sent something that was not asked for")
	errShortWrite  = errors.New("it did not take a whole request")
)

// dial opens a line.
func (l *load) dial(c *connection) error {
	socket, err := unix.Socket(l.family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return fmt.Errorf("open a socket: %w", err)
	}
	c.socket, c.state = socket, connDialing
	c.parser.reset()
	l.dialling++
	// A request is one write: nothing is to be gathered.
	if err := unix.SetsockoptInt(socket, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
		return fmt.Errorf("set up a socket: %w", err)
	}
	if c.source != nil {
		_ = unix.SetsockoptInt(socket, unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1) // then there are fewer ports
		if err := unix.Bind(socket, c.source); err != nil {
			return fmt.Errorf("bind to an address of its own: %w", err)
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

// handle is what an event of a line leads to.
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
	if err := l.watch(c, unix.EPOLL_CTL_MOD, unix.EPOLLIN); err != nil {
		return err
	}
	l.dialling--
	c.state = connIdle
	switch {
	case c.reconnects:
		return l.send(c)
	case l.base == 0: // not begun
		return nil
	}
	return l.nextRequest(c, l.now())
}

// nextRequest gives a line its next request, or lets it wait for the moment of one.
func (l *load) nextRequest(c *connection, now time.Duration) error {
	if c.rate == 0 {
		if now >= l.closes {
			return nil
		}
		return l.issue(c, now, now >= l.opens)
	}
	if !c.inIdle {
		c.inIdle = true
		c.idle <- c // it has room for every line of the group
	}
	return nil
}

// takeIdle takes the first free line of a group, nil when there is none. One that lost its connection meanwhile comes again.
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

// dueAt is when the next request of a group is to be sent.
func (l *load) dueAt(g *clients) time.Duration {
	return l.base + g.startAfter + time.Duration(float64(g.next)/g.rate*float64(time.Second))
}

// sendDue sends the requests whose moment has come, as far as lines are free. The others wait, or are dropped.
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

// issue sends the next request on a line, which a fresh client connects first.
func (l *load) issue(c *connection, since time.Duration, counted bool) error {
	c.startedAt, c.counted = since, counted
	if counted {
		c.intended++
		c.sent++
		l.outstanding++
	}
	if c.reconnects {
		return l.dial(c)
	}
	return l.send(c)
}

func (l *load) send(c *connection) error {
	c.request = c.requests.next(c.request[:0], l.random)
	c.state, c.received = connWaiting, 0
	l.waiting++
	n, err := unix.Write(c.socket, c.request)
	if err == nil && n < len(c.request) {
		err = errShortWrite // requests are short, and the connection is empty
	}
	if err != nil {
		return l.dropConnection(c, err)
	}
	return nil
}

// receive reads what has come. An answer that does not fit the buffer comes in several pieces: epoll tells of the rest again.
func (l *load) receive(c *connection) error {
	n, err := unix.Read(c.socket, l.buffer)
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
	whole, err := c.parser.feed(l.buffer[:n])
	if err != nil {
		return l.dropConnection(c, err)
	}
	if whole {
		return l.count(c, l.buffer[:n])
	}
	return nil
}

// addUsage counts an answer, and goes on. The moment of the answer is that of the next request as well: the clock is read once.
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
	c.parser.reset()
	return l.nextRequest(c, now)
}

func (t *results) count(c *connection, piece []byte, now time.Duration) {
	t.answers++
	t.bytes += uint64(c.received)
	t.lastAnswer = now
	switch status := c.parser.status; {
	case c.unexpected != nil && c.unexpected(status, piece):
		if t.unexpectedCount++; t.firstUnexpected == "" {
			t.firstUnexpected = fmt.Sprintf("%.600q", piece)
		}
	default:
		if t.statuses[status]++; status == 200 {
			_ = t.latency.RecordValue(int64(min(max(now-c.startedAt, 1), latencyRange))) // within the range there is no error
		}
	}
}

// dropConnection gives up a connection, with the request on it if there is one, and opens it anew: so often, without an answer in between.
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
		c.lost++
	}
	l.lostInARow++
	if limit := 100 + 2*len(l.conns); l.lostInARow > limit {
		return fmt.Errorf("%w: %d connections ended one after the other without an answer (after %d answers), the last because %w",
			errGone, l.lostInARow, l.answered, why)
	}
	return l.reconnect(c)
}

// reconnect ends a connection and opens the next one; a fresh client does so at its next moment.
func (l *load) reconnect(c *connection) error {
	_ = unix.Close(c.socket) // what it could say was said by the read before
	c.socket, c.state = -1, connClosed
	if !c.reconnects {
		return l.dial(c)
	}
	c.parser.reset()
	return l.nextRequest(c, l.now())
}
