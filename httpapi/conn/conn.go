package conn

import (
	"net"
	"net/netip"
	"sync/atomic"
	"time"
)

// reportFull calls OnFull when the cap is reached, reportRoom OnRoom when there is room again; each once per change.
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

// permit is a connection's place under the cap. It is released once, although the server closes connections twice that
// are idle at a shutdown.
type permit struct {
	listener  *Listener // nil: the connection does not belong to a Listener
	clientKey netip.Addr
	reserve   bool // the connection is beyond the cap
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

// Conn is a connection that a Listener accepted. Close may be called more than once and by any goroutine; all other
// methods only by the goroutine that serves the connection.
type Conn struct {
	transport
	// User is for the server: its own state of the connection.
	User any

	permit  permit
	peer    netip.Addr
	express Express       // may be nil
	state   atomic.Uint32 // connReads, connExpresses or connEnds

	slot         admissionSlot
	queued       *queuedRequest // nil until a request waits for a slot for the first time
	socket       *socketInfo
	requests     uint32 // complete requests so far
	sample       uint32 // requests plus an offset that differs between connections, so that short ones are sampled too
	firstAwaited bool   // awaitFirstRequest was called

	recorder        DurationRecorder // of the present answer; nil: its duration was recorded
	instantDeadline time.Time        // the write deadline that this answer would have if it took no time
}

// DurationRecorder records how long answers took.
type DurationRecorder interface{ Add(elapsed time.Duration) }

// Peer returns the remote address without a zone. A mapped IPv4 address is returned as IPv4. It is the zero address for
// connections other than TCP.
func (c *Conn) Peer() netip.Addr { return c.peer }

// PeerOf converts an address of package net to the form of Conn.Peer.
func PeerOf(addr net.Addr) netip.Addr {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	ip, _ := netip.AddrFromSlice(tcp.IP)
	return ip.Unmap()
}

// Reserve reports whether the connection is beyond the cap. It must be answered once and then closed.
func (c *Conn) Reserve() bool { return c.permit.reserve }

// RecordDuration has the duration of the present answer recorded when the server sets the answer's write deadline,
// which it does when the answer is ready to be written. instantDeadline is the write deadline if the answer took no
// time.
func (c *Conn) RecordDuration(instantDeadline time.Time, recorder DurationRecorder) {
	c.instantDeadline, c.recorder = instantDeadline, recorder
}

// RequestArrived counts a complete request. It reports whether it is the connection's first, and whether it is sampled:
// then Admit must be called for it.
func (c *Conn) RequestArrived() (first, sampled bool) {
	sampled = c.shedder != nil && c.shedder.samples(c.sample)
	c.requests++
	c.sample++
	return c.requests == 1, sampled
}

// Admit reports whether to serve a request. It may wait for an admission slot. The request must be complete, so that
// one that arrives byte by byte does not take a slot.
func (c *Conn) Admit(p Priority) bool { return c.shedder.admit(c, p) }

// Read implements net.Conn. The server does not get the requests that Express answers. While load is shed, a connection
// releases its admission slot when its next request has not come yet.
func (c *Conn) Read(b []byte) (int, error) {
	for {
		if c.shedder != nil && len(b) >= c.readBufferBytes && c.requests > 0 && c.shedder.limiting.Load() && !c.prefetch(b) {
			c.shedder.releaseIdle(c)
		}
		n, err := c.transport.receive(b)
		if n > 0 {
			var expressErr error
			if n, expressErr = c.answerExpress(b[:n]); expressErr != nil {
				return 0, expressErr
			}
		}
		if n > 0 || err != nil {
			return c.transport.deliver(b[:n], err)
		}
	}
}

// prefetch reads the bytes that have come already, for the Read that follows, and reports whether there were any.
// Asking first and then reading would be one more system call.
func (c *Conn) prefetch(b []byte) bool {
	if c.tls != nil {
		return c.pending()
	}
	if c.framing.deferred != nil { // a slice of b, which is overwritten
		c.framing.parseDeferred()
	}
	c.prefetched = c.socketInfo().recvNow(b)
	return c.prefetched > 0
}

// queueAge returns how long a request has lain in the socket, 0 if it follows another in the same read. Time before the
// previous answer was ready does not count, because a client that sends requests without waiting for answers delays
// itself. When that answer was ready follows from its write deadline.
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

// SetReadDeadline implements net.Conn. The first deadline applies to the whole first request.
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

// SetWriteDeadline implements net.Conn. The server calls it with a new clock reading when an answer is ready.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	if c.recorder != nil {
		c.recorder.Add(t.Sub(c.instantDeadline))
		c.recorder = nil
	}
	return c.transport.SetWriteDeadline(t)
}

// socketInfo returns the connection's socketInfo, nil if it is not TCP or the system is not supported.
func (c *Conn) socketInfo() *socketInfo {
	if c.socket == nil && c.tcp != nil {
		c.socket = newSocketInfo(c.tcp)
	}
	return c.socket
}

// pending reports whether unread bytes have come.
func (c *Conn) pending() bool { return c.socketInfo().pending() }

// Close implements net.Conn. While Express is answering, the connection is closed after the answer; Close does not
// wait.
func (c *Conn) Close() error {
	if c.state.CompareAndSwap(connExpresses, connEnds) {
		return nil
	}
	return c.closeNow()
}

// closeNow closes the descriptor before it releases the permit, so that there are never more descriptors than permits.
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

// SetKeepAlive is like that of *net.TCPConn.
func (c *Conn) SetKeepAlive(on bool) error {
	if c.tcp == nil {
		return nil
	}
	return c.tcp.SetKeepAlive(on)
}

// SetKeepAlivePeriod is like that of *net.TCPConn.
func (c *Conn) SetKeepAlivePeriod(period time.Duration) error {
	if c.tcp == nil {
		return nil
	}
	return c.tcp.SetKeepAlivePeriod(period)
}
