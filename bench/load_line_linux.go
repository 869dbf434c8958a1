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
	lineOff   phase = iota
	lineDials       // it is being connected
	lineFree        // nothing is asked on it
	lineWaits       // a request is under way
)

// line is one connection, and those that take its place when it ends.
type line struct {
	number, socket int
	phase          phase
	queued         bool          // it stands in the ring of free lines
	blocked        bool          // the socket took only a part of the request
	counted        bool          // the request is within the measured time
	since          time.Duration // what latency is counted from; while it dials, when that began
	request        []byte
	sent           int // bytes of the request that are on their way
	received       int // bytes of the answer so far
	answer         answer
}

// dial opens a line. That it can't is the end of the load: there is nobody to ask.
func (d *driver) dial(c *line) error {
	socket, err := d.place.dial()
	if err != nil {
		return d.gone(err)
	}
	c.socket, c.phase, c.since = socket, lineDials, d.now()
	c.blocked, c.sent, c.received = false, 0, 0
	c.answer.reset()
	d.dialling++
	return d.poll.add(socket, c.number, unix.EPOLLOUT)
}

// gone says that there is no target any more, and what is known of its end.
func (d *driver) gone(why error) error {
	before := ""
	if d.lastTrouble != nil {
		before = fmt.Sprintf("; %d connections were lost without an answer, the last because %v", d.troubles, d.lastTrouble)
	}
	return fmt.Errorf("%w: connecting: %w (after %d answers%s)", errGone, why, d.everAnswered, before)
}

// impatient ends the load when a connection does not come about.
func (d *driver) impatient(now time.Duration) error {
	if d.dialling == 0 {
		return nil
	}
	for i := range d.lines {
		if c := &d.lines[i]; c.phase == lineDials && now-c.since > d.patience {
			return d.gone(errPatience)
		}
	}
	return nil
}

// handle is what an event of a line leads to.
func (d *driver) handle(c *line, events uint32) error {
	if c.phase == lineDials {
		return d.connected(c)
	}
	if events&unix.EPOLLOUT != 0 && c.blocked {
		if lost, err := d.write(c); lost || err != nil {
			return err
		}
	}
	if events&^unix.EPOLLOUT != 0 {
		return d.receive(c)
	}
	return nil
}

func (d *driver) connected(c *line) error {
	if err := dialled(c.socket); err != nil {
		return d.gone(err)
	}
	if err := d.poll.change(c.socket, c.number, unix.EPOLLIN); err != nil {
		return err
	}
	d.dialling--
	return d.ready(c, d.now())
}

// ready gives a line its next request, or lets it wait for the moment of one.
func (d *driver) ready(c *line, now time.Duration) error {
	c.phase = lineFree
	if d.rate > 0 {
		d.free.push(c)
		return nil
	}
	if d.asking {
		return d.ask(c, now, d.measuring)
	}
	return nil
}

// sendDue sends the requests whose moment has come, as far as lines are free. The others wait, and are charged for it.
func (d *driver) sendDue(now time.Duration) error {
	if d.rate == 0 {
		return nil
	}
	for {
		moment := d.moment(d.next)
		if moment > now || moment >= d.closes {
			return nil
		}
		c := d.free.pop(d.lines)
		if c == nil {
			return nil
		}
		d.next++
		if err := d.ask(c, moment, moment >= d.opens); err != nil {
			return err
		}
	}
}

// moment is when a request is to be sent.
func (d *driver) moment(number uint64) time.Duration {
	return d.base + time.Duration(float64(number)*d.period)
}

// ask sends the next request on a line.
func (d *driver) ask(c *line, since time.Duration, counted bool) error {
	c.request = d.asker.next(c.request[:0], d.random)
	c.phase, c.since, c.counted, c.sent, c.received = lineWaits, since, counted, 0, 0
	d.waiting++
	d.everSent++
	if counted {
		d.owed++
	}
	_, err := d.write(c)
	return err
}

// write sends what the socket takes, and waits for it when that is not all.
func (d *driver) write(c *line) (lost bool, err error) {
	n, err := unix.Write(c.socket, c.request[c.sent:])
	switch {
	case err == nil:
		c.sent += n
	case again(err):
	default:
		return true, d.lose(c, err)
	}
	blocked := c.sent < len(c.request)
	if blocked == c.blocked {
		return false, nil
	}
	c.blocked = blocked
	interest := uint32(unix.EPOLLIN)
	if blocked {
		interest |= unix.EPOLLOUT
	}
	return false, d.poll.change(c.socket, c.number, interest)
}

// again tells errors that mean: not yet.
func again(err error) bool { return errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) }

// receive reads what has come. An answer that does not fit the buffer comes in several pieces: epoll tells of the rest again.
func (d *driver) receive(c *line) error {
	n, err := unix.Read(c.socket, d.buffer)
	switch {
	case err != nil && again(err):
		return nil
	case err != nil:
		return d.lose(c, err)
	case n == 0:
		return d.lose(c, errClosed)
	case c.phase != lineWaits:
		return d.lose(c, errUnasked)
	}
	c.received += n
	whole, err := c.answer.feed(d.buffer[:n])
	switch {
	case err != nil:
		return d.lose(c, err)
	case !whole:
		return nil
	case c.sent < len(c.request):
		return d.lose(c, errTooSoon)
	}
	return d.answered(c)
}

// answered counts an answer, and goes on. The moment of the answer is that of the next request as well: the clock is read once, and
// nothing lies between the two but the making of the request.
func (d *driver) answered(c *line) error {
	now := d.now()
	d.waiting--
	d.everAnswered++
	d.troubles, d.lastTrouble = 0, nil
	if c.counted {
		d.owed--
		d.answers++
		d.statuses[c.answer.status]++
		d.bytes += uint64(c.received)
		d.lastAnswer = now
		// The value is within the range, so there is no error.
		_ = d.latency.RecordValue(int64(min(max(now-c.since, 1), loadLatencyMax)))
	}
	if c.answer.last {
		return d.redial(c)
	}
	c.answer.reset()
	return d.ready(c, now)
}

// lose gives up a connection, with the request on it if there is one, and opens it anew: so often, without an answer in between.
func (d *driver) lose(c *line, why error) error {
	if c.phase == lineWaits {
		d.forget(c)
	}
	d.troubles++
	d.lastTrouble = why
	if limit := 100 + 2*len(d.lines); d.troubles > limit {
		return fmt.Errorf("%w: %d connections ended one after the other without an answer (after %d answers), the last because %w",
			errGone, d.troubles, d.everAnswered, why)
	}
	return d.redial(c)
}

// forget counts the request of a line as lost.
func (d *driver) forget(c *line) {
	d.waiting--
	d.everLost++
	if c.counted {
		d.owed--
		d.lost++
	}
	c.phase = lineOff
}

func (d *driver) redial(c *line) error {
	_ = unix.Close(c.socket) // what it could say was said by the read before
	c.socket, c.phase = -1, lineOff
	return d.dial(c)
}

// ring is a queue of free lines: each gets its turn, so that none is left idle until the target ends it.
type ring struct {
	numbers      []int
	first, count int
}

// push puts a free line at the end, unless it stands there already: it was free before, lost its connection and has a new one.
func (r *ring) push(c *line) {
	if c.queued {
		return
	}
	c.queued = true
	r.numbers[(r.first+r.count)%len(r.numbers)] = c.number
	r.count++
}

// pop takes the first line that is free still, nil when there is none.
func (r *ring) pop(lines []line) *line {
	for r.count > 0 {
		c := &lines[r.numbers[r.first]]
		r.first = (r.first + 1) % len(r.numbers)
		r.count--
		c.queued = false
		if c.phase == lineFree {
			return c
		}
	}
	return nil
}
