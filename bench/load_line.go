//go:build linux

package main

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// phase is what a line does.
type phase uint8

const (
	lineOff   phase = iota // of a fresh client: it has no connection yet
	lineDials              // it is being connected
	lineFree               // nothing is asked on it
	lineWaits              // a request is under way
)

// line is one client's connection, and those that take its place when it ends.
type line struct {
	*group
	number, socket int
	source         unix.Sockaddr // nil is the kernel's choice
	phase          phase
	queued         bool          // it stands among the free lines
	counted        bool          // the request is within the measured time
	since          time.Duration // what latency is counted from
	request        []byte
	received       int // bytes of the answer so far
	answer         answer
}

// Why a connection is given up.
var (
	errClosed  = errors.New("it ended the connection before its answer")
	errUnasked = errors.New("it sent something that was not asked for")
	errShort   = errors.New("it did not take a whole request")
)

// dial opens a line.
func (l *load) dial(c *line) error {
	socket, err := unix.Socket(l.family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return fmt.Errorf("open a socket: %w", err)
	}
	c.socket, c.phase = socket, lineDials
	c.answer.reset()
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
		return l.lose(c, err)
	}
	return l.watch(c, unix.EPOLL_CTL_ADD, unix.EPOLLOUT)
}

func (l *load) watch(c *line, operation int, interest uint32) error {
	return unix.EpollCtl(l.poll, operation, c.socket, &unix.EpollEvent{Events: interest, Fd: int32(c.number)})
}

// handle is what an event of a line leads to.
func (l *load) handle(c *line) error {
	if c.phase != lineDials {
		return l.receive(c)
	}
	code, err := unix.GetsockoptInt(c.socket, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && code != 0 {
		err = unix.Errno(code)
	}
	if err != nil {
		return l.lose(c, err)
	}
	if err := l.watch(c, unix.EPOLL_CTL_MOD, unix.EPOLLIN); err != nil {
		return err
	}
	l.dialling--
	c.phase = lineFree
	switch {
	case c.fresh:
		return l.send(c)
	case l.base == 0: // not begun
		return nil
	}
	return l.ready(c, l.now())
}

// ready gives a line its next request, or lets it wait for the moment of one.
func (l *load) ready(c *line, now time.Duration) error {
	if c.rate == 0 {
		if now >= l.closes {
			return nil
		}
		return l.ask(c, now, now >= l.opens)
	}
	if !c.queued {
		c.queued = true
		c.free <- c // it has room for every line of the group
	}
	return nil
}

// idle takes the first free line of a group, nil when there is none. One that lost its connection meanwhile comes again.
func (g *group) idle() *line {
	for {
		select {
		case c := <-g.free:
			c.queued = false
			if c.phase == lineFree || c.fresh && c.phase == lineOff {
				return c
			}
		default:
			return nil
		}
	}
}

// moment is when the next request of a group is to be sent.
func (l *load) moment(g *group) time.Duration {
	return l.base + g.from + time.Duration(float64(g.next)/g.rate*float64(time.Second))
}

// sendDue sends the requests whose moment has come, as far as lines are free. The others wait, or are dropped.
func (l *load) sendDue(now time.Duration) error {
	for _, g := range l.groups {
		for g.rate > 0 && l.base > 0 {
			moment := l.moment(g)
			if moment > now || moment >= l.closes {
				break
			}
			c := g.idle()
			if c == nil && !g.drops {
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
			if err := l.ask(c, moment, moment >= l.opens); err != nil {
				return err
			}
		}
	}
	return nil
}

// ask sends the next request on a line, which a fresh client connects first.
func (l *load) ask(c *line, since time.Duration, counted bool) error {
	c.since, c.counted = since, counted
	if counted {
		c.intended++
		c.sent++
		l.owed++
	}
	if c.fresh {
		return l.dial(c)
	}
	return l.send(c)
}

func (l *load) send(c *line) error {
	c.request = c.asker.next(c.request[:0], l.random)
	c.phase, c.received = lineWaits, 0
	l.waiting++
	n, err := unix.Write(c.socket, c.request)
	if err == nil && n < len(c.request) {
		err = errShort // requests are short, and the connection is empty
	}
	if err != nil {
		return l.lose(c, err)
	}
	return nil
}

// receive reads what has come. An answer that does not fit the buffer comes in several pieces: epoll tells of the rest again.
func (l *load) receive(c *line) error {
	n, err := unix.Read(c.socket, l.buffer)
	switch {
	case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
		return nil
	case err != nil:
		return l.lose(c, err)
	case n == 0:
		return l.lose(c, errClosed)
	case c.phase != lineWaits:
		return l.lose(c, errUnasked)
	}
	c.received += n
	whole, err := c.answer.feed(l.buffer[:n])
	if err != nil {
		return l.lose(c, err)
	}
	if whole {
		return l.count(c, l.buffer[:n])
	}
	return nil
}

// count counts an answer, and goes on. The moment of the answer is that of the next request as well: the clock is read once.
func (l *load) count(c *line, piece []byte) error {
	now := l.now()
	l.waiting--
	l.answered++
	l.troubles, c.phase = 0, lineFree
	if c.counted {
		c.counted = false
		l.owed--
		c.tally.count(c, piece, now)
	}
	if c.answer.last || c.fresh {
		return l.renew(c)
	}
	c.answer.reset()
	return l.ready(c, now)
}

func (t *tally) count(c *line, piece []byte, now time.Duration) {
	t.answers++
	t.bytes += uint64(c.received)
	t.lastAnswer = now
	switch status := c.answer.status; {
	case c.strange != nil && c.strange(status, piece):
		if t.odd++; t.first == "" {
			t.first = fmt.Sprintf("%.600q", piece)
		}
	default:
		if t.statuses[status]++; status == 200 {
			_ = t.latency.RecordValue(int64(min(max(now-c.since, 1), loadLatencyMax))) // within the range there is no error
		}
	}
}

// lose gives up a connection, with the request on it if there is one, and opens it anew: so often, without an answer in between.
func (l *load) lose(c *line, why error) error {
	switch c.phase {
	case lineWaits:
		l.waiting--
	case lineDials:
		l.dialling--
	}
	if c.counted {
		c.counted = false
		l.owed--
		c.lost++
	}
	l.troubles++
	if limit := 100 + 2*len(l.lines); l.troubles > limit {
		return fmt.Errorf("%w: %d connections ended one after the other without an answer (after %d answers), the last because %w",
			errGone, l.troubles, l.answered, why)
	}
	return l.renew(c)
}

// renew ends a connection and opens the next one; a fresh client does so at its next moment.
func (l *load) renew(c *line) error {
	_ = unix.Close(c.socket) // what it could say was said by the read before
	c.socket, c.phase = -1, lineOff
	if !c.fresh {
		return l.dial(c)
	}
	c.answer.reset()
	return l.ready(c, l.now())
}
