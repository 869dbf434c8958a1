package httpapi

import (
	"net"
	"net/netip"
	"sync/atomic"
	"time"
)

// noteFull and noteRoom tell that the cap is reached, and that it isn't any more.
func (l *patient) noteFull() {
	if l.strain != nil && l.full.CompareAndSwap(false, true) {
		l.strain.full.Begin(l.strain.clock())
	}
}

func (l *patient) noteRoom() {
	if l.full.CompareAndSwap(true, false) {
		l.strain.full.Calm(l.strain.clock())
	}
}

// slot is a connection's place; the first free gives it back.
// The server closes a connection twice when a shutdown meets an idle one.
type slot struct {
	of     *patient
	sharer netip.Addr
	spare  bool // it is beyond the cap
	freed  atomic.Bool
}

func (s *slot) free(c net.Conn) {
	if !s.freed.CompareAndSwap(false, true) {
		return
	}
	if s.spare {
		s.of.spares.leave(c)
	} else {
		<-s.of.slots
		s.of.noteRoom()
	}
	s.of.conns.open.Add(-1)
	s.of.shares.give(s.sharer)
}

// slotted gives its slot back on Close.
type slotted struct {
	lazyDeadlines
	slot slot
}

// Close closes the descriptor first, so that there are never more of them
// than slots.
func (c *slotted) Close() error {
	err := c.Conn.Close()
	c.slot.free(c)
	return err
}

// slottedTCP is slotted for connections of TCP, with what the server looks for
// in them.
type slottedTCP struct {
	gatherer
	slot slot
	peer netip.Addr

	seat     seat
	place    *waiter // nil until it waits for a seat for the first time
	age      *socketAge
	requests uint32 // that came as a whole
	keyed    bool   // the last request had a key that was good
	awaited  bool   // the first request was awaited

	shard *tallyShard // where its requests are counted
	times *durations  // where it is counted how long the present answer takes; nil: it was counted
	soon  time.Time   // the write deadline that this answer would have if it took no time
}

// Read is net.Conn's. While seats are given out, who has nothing more to do gives up the seat.
func (c *slottedTCP) Read(b []byte) (int, error) {
	if c.watch != nil && len(b) >= c.buffer && c.requests > 0 && c.watch.seating.Load() && !c.readAhead(b) {
		c.watch.rest(c)
	}
	return c.gatherer.Read(b)
}

// readAhead reads what has come already, for the Read that follows: to ask first whether anything has would cost as much. False: nothing
// has.
func (c *slottedTCP) readAhead(b []byte) bool {
	if c.tls != nil {
		return c.pending()
	}
	if c.wire.unread != nil { // it lies in b
		c.wire.catchUp()
	}
	c.ahead = c.asked().take(b)
	return c.ahead > 0
}

// waited is how long a request has lain in the socket; of one that came behind another nobody knows. The time in which its own connection was busy does not count: a client that sends
// the next request before it has its answer waits for itself. The server sets a deadline when it has an answer ready to be written.
func (c *slottedTCP) waited() time.Duration {
	if !c.first {
		return 0
	}
	age := c.asked().get()
	if age >= lateAge && !c.write.wanted.IsZero() {
		answered := c.write.wanted.Add(-c.watch.writeTimeout)
		age = min(age, c.watch.clock().Sub(answered))
	}
	return age
}

// SetReadDeadline is net.Conn's. The server sets the first one before anything else; it stands for the first request as a whole.
func (c *slottedTCP) SetReadDeadline(t time.Time) error {
	if c.awaited && c.wire.begun == 0 {
		return nil
	}
	err := c.gatherer.SetReadDeadline(t)
	if !c.awaited && c.tls == nil && c.slot.of.firstMax > 0 {
		c.awaited = true
		c.awaitFirst()
	}
	return err
}

// SetWriteDeadline is net.Conn's. The server sets it when it has an answer ready to be written, and has read the clock for it.
func (c *slottedTCP) SetWriteDeadline(t time.Time) error {
	if c.times != nil {
		c.times.add(t.Sub(c.soon))
		c.times = nil
	}
	return c.gatherer.SetWriteDeadline(t)
}

// asked is what asks the kernel about the connection, nil where it can't be asked.
func (c *slottedTCP) asked() *socketAge {
	if c.age == nil {
		c.age = newSocketAge(c.tcp)
	}
	return c.age
}

// pending tells whether the next request, or some of it, has come.
func (c *slottedTCP) pending() bool { return c.asked().pending() }

// Close is that of slotted.
func (c *slottedTCP) Close() error {
	var err error
	if c.tls != nil {
		err = c.tls.close()
	} else {
		err = c.Conn.Close()
	}
	c.slot.free(c)
	if c.watch != nil && c.watch.seating.Load() {
		c.watch.rest(c)
	}
	return err
}

// SetKeepAlive is that of *net.TCPConn.
func (c *slottedTCP) SetKeepAlive(on bool) error { return c.tcp.SetKeepAlive(on) }

// SetKeepAlivePeriod is that of *net.TCPConn.
func (c *slottedTCP) SetKeepAlivePeriod(period time.Duration) error {
	return c.tcp.SetKeepAlivePeriod(period)
}
