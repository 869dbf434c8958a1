package conn

import (
	"net"
	"net/netip"
	"sync/atomic"
	"time"
)

// reportFull calls Config.OnFull when the cap of connections is reached. Repeated calls have no effect until reportRoom
// is called.
func (l *Listener) reportFull() {
	if l.full.CompareAndSwap(false, true) {
		l.config.OnFull()
	}
}

// reportRoom calls Config.OnRoom when a connection can be accepted below the cap again, if reportFull was called
// before.
func (l *Listener) reportRoom() {
	if l.full.CompareAndSwap(true, false) {
		l.config.OnRoom()
	}
}

// permit counts one connection against the cap of its Listener (Config.MaxConns). Only the first release has an effect,
// because at a shutdown fasthttp closes idle connections twice.
type permit struct {
	listener  *Listener // nil: the connection does not belong to a Listener
	clientKey netip.Addr
	reserve   bool // the connection is beyond the cap
	released  atomic.Bool
}

func (s *permit) release(c *Conn) {
	if s.listener == nil || !s.released.CompareAndSwap(false, true) {
		return
	}
	if s.reserve {
		s.listener.reserve.remove(c)
	} else {
		s.listener.idle.remove(c)
		<-s.listener.permits
		s.listener.reportRoom()
	}
	s.listener.config.Counts.Open.Add(-1)
	s.listener.clientLimit.release(s.clientKey)
}

// Conn is a connection that a Listener accepted. Any goroutine may call Close, also more than once. All other methods
// are only for the goroutine that serves the connection.
type Conn struct {
	transport
	// User belongs to the caller, for its data about the connection.
	User any

	permit  permit
	idle    idleState
	peer    netip.Addr
	express Express       // answers some requests before fasthttp reads them; may be nil
	state   atomic.Uint32 // connServing, connInExpress or connClosing: whether Express is running

	slot         admissionSlot  // the right to be served during overload
	queued       *queuedRequest // nil until the connection's first wait for a slot
	socket       *socketInfo
	requests     uint32 // complete requests so far
	sample       uint32 // requests plus an offset, so that only some connections have their first request sampled
	firstAwaited bool   // awaitFirstRequest was called
	used         bool   // a byte has been received

	recorder        DurationRecorder // for the current response; nil after its duration was recorded
	instantDeadline time.Time        // see RecordDuration
}

// DurationRecorder records the durations of responses.
type DurationRecorder interface{ Add(elapsed time.Duration) }

// Peer returns the remote address without a zone. It returns an IPv4-mapped IPv6 address as IPv4. For connections other
// than TCP it returns the zero address.
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

// Reserve reports whether the connection is beyond the cap. The server must close such a connection after one response.
func (c *Conn) Reserve() bool { return c.permit.reserve }

// RecordDuration arranges that SetWriteDeadline records the duration of the current response. fasthttp sets the write
// deadline when the response is ready: to the present time plus the server's write timeout. instantDeadline is the
// deadline that a response ready at once would get: the start of the request plus the same timeout. So the difference
// between the two deadlines is the duration.
func (c *Conn) RecordDuration(instantDeadline time.Time, recorder DurationRecorder) {
	c.instantDeadline, c.recorder = instantDeadline, recorder
}

// RequestArrived counts a complete request. first reports whether it is the first of the connection. If sampled is
// true, the caller must call Admit for the request.
func (c *Conn) RequestArrived() (first, sampled bool) {
	sampled = c.shedder != nil && c.shedder.samples(c.sample)
	c.requests++
	c.sample++
	return c.requests == 1, sampled
}

// Used reports whether the client has sent anything. Browsers open connections that they may never use.
func (c *Conn) Used() bool { return c.used }

// Admit reports whether the server should serve a request. During overload it may wait for an admission slot, which is
// the right of a connection to be served. The request must be complete, because a request that arrives byte by byte
// would occupy a slot for long.
func (c *Conn) Admit(p Priority) bool { return c.shedder.admit(c, p) }

// Read implements net.Conn. It does not return the requests that Express has answered. During overload it releases the
// admission slot of the connection unless the next request has already arrived.
func (c *Conn) Read(b []byte) (int, error) {
	for {
		if c.shedder != nil && len(b) >= c.readBufferBytes && c.requests > 0 && c.shedder.overloaded.Load() && !c.prefetch(b) {
			c.shedder.releaseIdle(c)
		}
		n, err := c.receive(b)
		if n > 0 {
			c.used = true
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

// receive is transport.receive. It also notes that the connection is idle meanwhile, unless a request has begun.
func (c *Conn) receive(b []byte) (int, error) {
	if c.framing.deferred != nil {
		c.framing.parseDeferred()
	}
	l := c.permit.listener
	if l == nil || c.permit.reserve || c.prefetched > 0 || len(c.firstRequest) > 0 || len(b) < c.readBufferBytes || c.framing.midRequest() {
		return c.transport.receive(b)
	}
	timeout := l.config.IdleTimeout
	if c.requests == 0 {
		timeout = l.config.ReadTimeout
	}
	if !c.idle.begin(c.lazyDeadlines.read.wanted.Sub(l.began) - timeout) {
		return 0, net.ErrClosed
	}
	n, err := c.transport.receive(b)
	if !c.idle.end() {
		return 0, net.ErrClosed
	}
	return n, err
}

// prefetch reads into b what has already arrived, for the transport.receive that follows. It reports whether any byte
// had arrived. To look first and then read would be one more system call.
func (c *Conn) prefetch(b []byte) bool {
	if c.tls != nil {
		return c.pending()
	}
	if c.framing.deferred != nil { // it is a slice of b, which recvNow overwrites
		c.framing.parseDeferred()
	}
	c.prefetched = c.socketInfo().recvNow(b)
	return c.prefetched > 0
}

// queueAge returns how long the current request lay unread in the socket. It returns 0 if the bytes of an earlier
// request came in the same read. The time before the previous response was ready does not count, because a client that
// sends requests without waiting for responses delays itself.
func (c *Conn) queueAge() time.Duration {
	if !c.firstInRead {
		return 0
	}
	age := c.socketInfo().queueAge()
	if age >= queueAgeTarget && !c.write.wanted.IsZero() {
		answered := c.write.wanted.Add(-c.shedder.writeTimeout) // fasthttp sets the write deadline when a response is ready
		age = min(age, c.shedder.clock().Sub(answered))
	}
	return age
}

// SetReadDeadline implements net.Conn. The first call also reads the first request, see awaitFirstRequest. The deadline
// of this call applies to the whole request: further calls have no effect until fasthttp has parsed the request.
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

// SetWriteDeadline implements net.Conn. It also records the duration of the response, see RecordDuration.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	if c.recorder != nil {
		c.recorder.Add(t.Sub(c.instantDeadline))
		c.recorder = nil
	}
	return c.transport.SetWriteDeadline(t)
}

// socketInfo returns nil if the connection is not TCP or if this system is not supported.
func (c *Conn) socketInfo() *socketInfo {
	if c.socket == nil && c.tcp != nil {
		c.socket = newSocketInfo(c.tcp)
	}
	return c.socket
}

// pending reports whether the socket has unread bytes.
func (c *Conn) pending() bool { return c.socketInfo().pending() }

// Close implements net.Conn. If Express is running, Close does not wait: the connection is closed after the response.
func (c *Conn) Close() error {
	if c.state.CompareAndSwap(connInExpress, connClosing) {
		return nil
	}
	return c.closeNow()
}

// closeNow releases the permit after it has closed the descriptor, so that there are never more descriptors than
// permits.
func (c *Conn) closeNow() error {
	var err error
	if c.tls != nil {
		err = c.tls.close()
	} else {
		err = c.Conn.Close()
	}
	c.permit.release(c)
	if c.shedder != nil && c.shedder.overloaded.Load() {
		c.shedder.releaseIdle(c)
	}
	return err
}
