package conn

import (
	"net"
	"net/netip"
	"sync/atomic"
	"time"
)

// reportFull and reportRoom tell that the cap is reached, and that it isn't any more.
func (l *Listener) reportFull() {
	if l.full.CompareAndSwap(false, true) {
		l.config.OnFull()
	}
}

func (l *Listener) reportRoom() {
	if l.full.CompareAndSwap(true, false) {
		l.config.OnRoom()
	}
}

// permit is the place of a connection under the cap. It is released once, though the server closes a connection twice
// when a shutdown finds it idle.
type permit struct {
	listener  *Listener // nil: of none
	clientKey netip.Addr
	reserve   bool // it is beyond the cap
	released  atomic.Bool
}

func (s *permit) release(c net.Conn) {
	if s.listener == nil || !s.released.CompareAndSwap(false, true) {
		return
	}
	if s.reserve {
		s.listener.reserve.remove(c)
	} else {
		<-s.listener.permits
		s.listener.reportRoom()
	}
	s.listener.config.Counts.Open.Add(-1)
	s.listener.clientLimit.release(s.clientKey)
}

// Conn is a connection as a Listener gives it. It may be closed more than once. Apart from that one goroutine
// reads, writes, sets deadlines and calls its methods: the one that serves it.
type Conn struct {
	transport
	// User is whatever the server that serves the connection keeps with it.
	User any

	permit  permit
	peer    netip.Addr
	express Express       // nil: none
	state   atomic.Uint32 // connReads and so on

	slot         admissionSlot
	queued       *queuedRequest // nil until it waits for a slot for the first time
	socket       *socketInfo
	requests     uint32 // that came as a whole
	sample       uint32 // counts with requests; which of them are sampled differs between connections, so that short ones are seen too
	firstAwaited bool   // the first request was awaited

	recorder        DurationRecorder // of the present answer; nil: it was counted
	instantDeadline time.Time        // the write deadline that this answer would have if it took no time
}

// DurationRecorder counts how long answers took.
type DurationRecorder interface{ Add(took time.Duration) }

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

// Reserve tells that the connection is one beyond the cap: it is to be answered once, and closed.
func (c *Conn) Reserve() bool { return c.permit.reserve }

// RecordDuration measures the present answer from when its request was there until the answer is ready to be written,
// which is when the server sets its write deadline. soon is the write deadline of an answer that takes no time.
func (c *Conn) RecordDuration(soon time.Time, in DurationRecorder) {
	c.instantDeadline, c.recorder = soon, in
}

// RequestArrived counts a request that is there as a whole. It tells whether it is the first of the connection, and
// whether it is to be shown to Admit.
func (c *Conn) RequestArrived() (first, looked bool) {
	looked = c.shedder != nil && c.shedder.samples(c.sample)
	c.requests++
	c.sample++
	return c.requests == 1, looked
}

// Admit tells whether a request is to be served, and may wait for a slot. The request must be there as a whole: one
// that comes byte by byte costs no work and takes no slot.
func (c *Conn) Admit(l Priority) bool { return c.shedder.admit(c, l) }

// Read is net.Conn's. Requests that Express answers are not handed to the server. While slots are given out, a
// connection without a next request releases its slot.
func (c *Conn) Read(b []byte) (int, error) {
	for {
		if c.shedder != nil && len(b) >= c.readBufferBytes && c.requests > 0 && c.shedder.limiting.Load() && !c.prefetch(b) {
			c.shedder.releaseIdle(c)
		}
		n, err := c.transport.receive(b)
		if n > 0 {
			var broken error
			if n, broken = c.answerExpress(b[:n]); broken != nil {
				return 0, broken
			}
		}
		if n > 0 || err != nil {
			return c.transport.deliver(b[:n], err)
		}
	}
}

// prefetch reads what has come already, for the read that follows; asking first whether anything has come would be a
// system call more. False: nothing has come.
func (c *Conn) prefetch(b []byte) bool {
	if c.tls != nil {
		return c.pending()
	}
	if c.framing.deferred != nil { // it lies in b
		c.framing.parseDeferred()
	}
	c.prefetched = c.socketInfo().recvNow(b)
	return c.prefetched > 0
}

// queueAge is how long a request has lain in the socket; 0 for one behind another in the same read. The time in which
// the connection was busy with its previous request does not count: a client that does not wait for its answers delays
// itself. Each write deadline tells when an answer was ready.
func (c *Conn) queueAge() time.Duration {
	if !c.firstInRead {
		return 0
	}
	age := c.socketInfo().queueAge()
	if age >= queueAgeTarget && !c.write.wanted.IsZero() {
		answered := c.write.wanted.Add(-c.shedder.writeTimeout)
		age = min(age, c.shedder.clock().Sub(answered))
	}
	return age
}

// SetReadDeadline is net.Conn's. The first one that the server sets applies to the first request as a whole.
func (c *Conn) SetReadDeadline(t time.Time) error {
	if c.firstAwaited && c.framing.requestsParsed == 0 {
		return nil
	}
	err := c.transport.SetReadDeadline(t)
	if !c.firstAwaited && c.tls == nil && c.permit.listener != nil && c.permit.listener.config.FirstRequestBytesMax > 0 {
		c.firstAwaited = true
		c.awaitFirstRequest()
	}
	return err
}

// SetWriteDeadline is net.Conn's. The server sets it when an answer is ready to be written, with a fresh clock reading.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	if c.recorder != nil {
		c.recorder.Add(t.Sub(c.instantDeadline))
		c.recorder = nil
	}
	return c.transport.SetWriteDeadline(t)
}

// socketInfo asks the kernel about the connection; nil where that is impossible.
func (c *Conn) socketInfo() *socketInfo {
	if c.socket == nil && c.tcp != nil {
		c.socket = newSocketInfo(c.tcp)
	}
	return c.socket
}

// pending tells whether the next request, or some of it, has come.
func (c *Conn) pending() bool { return c.socketInfo().pending() }

// Close is net.Conn's. While Express works on a request it waits for the answer, and does not wait itself.
func (c *Conn) Close() error {
	if c.state.CompareAndSwap(connExpresses, connEnds) {
		return nil
	}
	return c.closeNow()
}

// closeNow closes the descriptor first, so that there are never more of them than permits.
func (c *Conn) closeNow() error {
	var err error
	if c.tls != nil {
		err = c.tls.close()
	} else {
		err = c.Conn.Close()
	}
	c.permit.release(c)
	if c.shedder != nil && c.shedder.limiting.Load() {
		c.shedder.releaseIdle(c)
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
