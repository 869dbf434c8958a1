package conn

import (
	"net"
	"net/netip"
	"sync/atomic"
	"time"
)

// noteFull and noteRoom tell that the cap is reached, and that it isn't any more.
func (l *Listener) noteFull() {
	if l.full.CompareAndSwap(false, true) {
		l.config.Full()
	}
}

func (l *Listener) noteRoom() {
	if l.full.CompareAndSwap(true, false) {
		l.config.Room()
	}
}

// slot is a connection's place; the first free gives it back.
// The server closes a connection twice when a shutdown meets an idle one.
type slot struct {
	of     *Listener // nil: of none
	sharer netip.Addr
	spare  bool // it is beyond the cap
	freed  atomic.Bool
}

func (s *slot) free(c net.Conn) {
	if s.of == nil || !s.freed.CompareAndSwap(false, true) {
		return
	}
	if s.spare {
		s.of.spares.leave(c)
	} else {
		<-s.of.slots
		s.of.noteRoom()
	}
	s.of.config.Counts.Open.Add(-1)
	s.of.shares.give(s.sharer)
}

// Conn is a connection as a Listener gives it. It may be closed more than once. Apart from that one goroutine reads, writes, sets deadlines
// and calls its methods: the one that serves it.
type Conn struct {
	gatherer
	// User is whatever the server that serves the connection keeps with it.
	User any

	slot slot
	peer netip.Addr

	seat     seat
	place    *waiter // nil until it waits for a seat for the first time
	age      *socketAge
	requests uint32 // that came as a whole
	awaited  bool   // the first request was awaited

	times Durations // of the present answer; nil: it was counted
	soon  time.Time // the write deadline that this answer would have if it took no time
}

// Durations counts how long answers took.
type Durations interface{ Add(took time.Duration) }

// Peer is the address of the other end, without zone, and an IPv4 address as one; the zero address where there is none.
func (c *Conn) Peer() netip.Addr { return c.peer }

// PeerOf is what Conn.Peer is for an address of the net package.
func PeerOf(addr net.Addr) netip.Addr {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	ip, _ := netip.AddrFromSlice(tcp.IP)
	return ip.Unmap()
}

// Spare tells that the connection is one beyond the cap: it is to be answered once, and closed.
func (c *Conn) Spare() bool { return c.slot.spare }

// Time has the time of the present answer counted when it is ready to be written, from when its request was there. The server sets its write
// deadline then: soon is what that would be if the answer took no time.
func (c *Conn) Time(soon time.Time, in Durations) { c.soon, c.times = soon, in }

// Arrived counts a request that is there as a whole. It tells whether it is the connection's first, and whether Admit wants to see it.
func (c *Conn) Arrived() (first, looked bool) {
	looked = c.overload != nil && c.overload.looksAt(c.requests)
	c.requests++
	return c.requests == 1, looked
}

// Admit tells whether a request is to be served. It may wait here for its turn. Only a request that is there as a whole may be shown to it:
// one that comes byte by byte costs no work, and takes no seat.
func (c *Conn) Admit(l Lane) bool { return c.overload.admit(c, l) }

// Read is net.Conn's. While seats are given out, who has nothing more to do gives up the seat.
func (c *Conn) Read(b []byte) (int, error) {
	if c.overload != nil && len(b) >= c.buffer && c.requests > 0 && c.overload.seating.Load() && !c.readAhead(b) {
		c.overload.rest(c)
	}
	return c.gatherer.Read(b)
}

// readAhead reads what has come already, for the Read that follows: to ask first whether anything has would cost as much. False: nothing
// has.
func (c *Conn) readAhead(b []byte) bool {
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
func (c *Conn) waited() time.Duration {
	if !c.first {
		return 0
	}
	age := c.asked().get()
	if age >= lateAge && !c.write.wanted.IsZero() {
		answered := c.write.wanted.Add(-c.overload.writeTimeout)
		age = min(age, c.overload.clock().Sub(answered))
	}
	return age
}

// SetReadDeadline is net.Conn's. The server sets the first one before anything else; it stands for the first request as a whole.
func (c *Conn) SetReadDeadline(t time.Time) error {
	if c.awaited && c.wire.begun == 0 {
		return nil
	}
	err := c.gatherer.SetReadDeadline(t)
	if !c.awaited && c.tls == nil && c.slot.of != nil && c.slot.of.config.FirstMax > 0 {
		c.awaited = true
		c.awaitFirst()
	}
	return err
}

// SetWriteDeadline is net.Conn's. The server sets it when it has an answer ready to be written, and has read the clock for it.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	if c.times != nil {
		c.times.Add(t.Sub(c.soon))
		c.times = nil
	}
	return c.gatherer.SetWriteDeadline(t)
}

// asked is what asks the kernel about the connection, nil where it can't be asked.
func (c *Conn) asked() *socketAge {
	if c.age == nil && c.tcp != nil {
		c.age = newSocketAge(c.tcp)
	}
	return c.age
}

// pending tells whether the next request, or some of it, has come.
func (c *Conn) pending() bool { return c.asked().pending() }

// Close closes the descriptor first, so that there are never more of them than slots.
func (c *Conn) Close() error {
	var err error
	if c.tls != nil {
		err = c.tls.close()
	} else {
		err = c.Conn.Close()
	}
	c.slot.free(c)
	if c.overload != nil && c.overload.seating.Load() {
		c.overload.rest(c)
	}
	return err
}

// SetKeepAlive is that of *net.TCPConn.
func (c *Conn) SetKeepAlive(on bool) error {
	if c.tcp == nil {
		return nil
	}
	return c.tcp.SetKeepAlive(on)
}

// SetKeepAlivePeriod is that of *net.TCPConn.
func (c *Conn) SetKeepAlivePeriod(period time.Duration) error {
	if c.tcp == nil {
		return nil
	}
	return c.tcp.SetKeepAlivePeriod(period)
}
