package conn

import (
	"container/heap"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tasard/tasard/httpapi/internal/fields"
)

const (
	// acceptPauseMin is the pause after a failed connection (isConnError) and after the first shortage error
	// (isShortage: no file descriptor or memory left).
	acceptPauseMin = 5 * time.Millisecond
	// acceptPauseMax is the longest pause after a shortage error. It is short enough to accept connections again within
	// two seconds after a shortage ends.
	acceptPauseMax = time.Second
	// logInterval is the minimum time between two log lines with the same message.
	logInterval = time.Minute
)

// sendBufferBytes limits the kernel's send buffer of a connection. Without a limit, the buffer of a client that does
// not read responses could grow to megabytes.
const sendBufferBytes = 128 << 10

// roomPause is the time between two searches for an idle connection.
const roomPause = 10 * time.Millisecond

// Config configures a Listener. Only MaxConns is required.
type Config struct {
	// MaxConns is the cap: the maximum number of open connections. At the cap, a new connection replaces an idle one:
	// the one with the oldest use (see Conn.MarkCounted). If no connection is idle, new connections wait.
	//
	// Danger: keep the cap well below the process's limit of open files. Set Concurrency of the fasthttp.Server to at
	// least twice the cap. Beyond Concurrency fasthttp sends its own 503. fasthttp counts worker goroutines, and a
	// worker ends a little later than its connection.
	MaxConns int
	// MaxConnsPerClient is the maximum number of open connections of one client (an IPv4 address or an IPv6 /64
	// prefix), but never more than a fifth of MaxConns. Excess connections are closed at once. 0 or less: no limit.
	MaxConnsPerClient int
	// ExemptClients reports whether an address, such as a proxy's, is exempt from MaxConnsPerClient.
	ExemptClients func(netip.Addr) bool
	// ReadTimeout, WriteTimeout and IdleTimeout are those of the fasthttp.Server.
	ReadTimeout, WriteTimeout, IdleTimeout time.Duration
	// TLS is the TLS configuration; nil means no TLS. With TLS, connections that are not TCP are closed.
	TLS *tls.Config
	// Express, if not nil, may answer requests before fasthttp reads them. read contains newly received bytes and begins
	// with a request. Express writes the responses to some requests at the beginning of read, and returns the total
	// length of these requests. fasthttp gets the remaining bytes. An error ends the connection. fasthttp considers the
	// connection idle while Express runs, because Express runs inside Conn.Read.
	Express func(c *Conn, read []byte) (used int, err error)
	// Log gets at most two lines a minute: one about errors of Accept, one about clients at MaxConnsPerClient. It may
	// be nil.
	Log *slog.Logger
	// Counts is updated by the Listener. It may be nil.
	Counts *Counts
	// OnShortage is called each time that Accept fails for lack of file descriptors or memory. It must not block. It
	// may be nil.
	OnShortage func()
}

// Counts counts the connections of any number of listeners.
type Counts struct {
	Open            atomic.Int64  // currently open
	Accepted        atomic.Uint64 // including those closed at once
	OverClientLimit atomic.Uint64 // closed at once because of MaxConnsPerClient
	IdleClosed      atomic.Uint64 // idle connections closed at the cap to admit new ones
	Shortages       atomic.Uint64 // failures of Accept for lack of file descriptors or memory
}

// Listen wraps ln in a Listener with connections of type *Conn. Close ends every call of Accept with net.ErrClosed.
//
// Accept retries after temporary errors, because fasthttp stops at an error. Without file descriptors or memory
// (EMFILE, ENFILE, ENOBUFS, ENOMEM), the pauses double from 5 ms to 1 s. If a connection failed before its accept, the
// pause is 5 ms. Errors of the listener are returned.
func Listen(ln net.Listener, c Config) *Listener {
	if c.OnShortage == nil {
		c.OnShortage = func() {}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Counts == nil {
		c.Counts = new(Counts)
	}
	if tcp, ok := ln.(*net.TCPListener); ok { // its connections inherit the size, which saves each a system call
		if raw, err := tcp.SyscallConn(); err == nil { // otherwise the listener is closed
			_ = raw.Control(func(fd uintptr) {
				_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUF, sendBufferBytes)
			})
		}
	}
	return &Listener{
		Listener: ln, config: c, began: time.Now(), //nolint:forbidigo // deadlines are in real time
		permits: make(chan struct{}, c.MaxConns), closed: make(chan struct{}),
		clientLimit: newClientLimit(c.MaxConnsPerClient, c.MaxConns, c.ExemptClients),
	}
}

// Listener accepts connections up to the cap Config.MaxConns. Only one goroutine may call Accept.
type Listener struct {
	net.Listener
	config      Config
	began       time.Time     // time of Listen; Listener.now counts from it
	permits     chan struct{} // one element for each open connection; the capacity is the cap
	clientLimit *clientLimit
	idle        idleConns
	closed      chan struct{}
	closeOnce   sync.Once
	closeErr    error

	acceptErrors, refusals eventLog // used only by the goroutine that calls Accept
}

func (l *Listener) now() time.Duration { return time.Since(l.began) } //nolint:forbidigo // deadlines are in real time

// Accept returns the next connection whose client is below its limit. At the cap it closes an idle connection. If none
// is idle, it waits until a connection becomes idle or is closed; new connections then wait in the kernel's backlog.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.acceptRetrying()
		if err != nil {
			return nil, err
		}
		c := l.admit(conn)
		if c == nil {
			continue
		}
		if err := l.acquirePermit(); err != nil {
			_ = conn.Close() // nothing was written, so no data can be lost
			return nil, err
		}
		l.config.Counts.Open.Add(1)
		l.idle.add(c)
		return c, nil
	}
}

// acquirePermit acquires a permit. At the cap it closes an idle connection, or waits.
func (l *Listener) acquirePermit() error {
	for {
		select {
		case l.permits <- struct{}{}:
			return nil
		default:
		}
		if c := l.idle.evict(int64(l.now())); c != nil {
			l.config.Counts.IdleClosed.Add(1)
			c.abort() // Conn.Read returns an error to the goroutine that serves c
			continue
		}
		select {
		case <-l.closed:
			return net.ErrClosed
		case l.permits <- struct{}{}:
			return nil
		case <-time.NewTimer(roomPause).C:
		}
	}
}

// admit wraps an accepted connection in a Conn. If the client is at its limit, or if TLS is configured and the
// connection is not TCP, admit closes the connection and returns nil.
func (l *Listener) admit(conn net.Conn) *Conn {
	peer := PeerOf(conn.RemoteAddr())
	c := &Conn{Conn: conn, listener: l, peer: peer, clientKey: l.clientLimit.keyOf(peer), awaitsRequest: true}
	c.lastUse = int64(c.Now())
	c.Trusted = l.config.ExemptClients != nil && l.config.ExemptClients(peer)
	c.tcp, _ = conn.(*net.TCPConn)
	if l.config.TLS != nil && c.tcp == nil || !l.clientLimit.acquire(c.clientKey) {
		l.config.Counts.OverClientLimit.Add(1)
		if c.clientKey.IsValid() {
			l.logRefusal(peer)
		}
		_ = conn.Close() // nothing was written, so no data can be lost
		return nil
	}
	if l.config.TLS != nil {
		c.Conn = tls.Server(conn, l.config.TLS) // the handshake follows at the first read
	}
	return c
}

// acceptRetrying retries Accept of the wrapped listener after temporary errors, see Listen.
func (l *Listener) acceptRetrying() (net.Conn, error) {
	pause := acceptPauseMin
	for {
		conn, err := l.Listener.Accept()
		if err == nil {
			l.config.Counts.Accepted.Add(1)
			return conn, nil
		}
		if errors.Is(err, os.ErrDeadlineExceeded) { // set by stopAccepting
			_ = l.Close()
			return nil, net.ErrClosed
		}
		short := isShortage(err)
		if !short && !isConnError(err) {
			return nil, err
		}
		if events := l.acceptErrors.count(l.now()); events > 0 {
			l.config.Log.LogAttrs(context.Background(), slog.LevelWarn, "can't accept connections; retrying (raise the limit of open files or lower the connection cap)",
				slog.String("error", err.Error()), slog.Int("errors", events))
		}
		if short {
			l.config.Counts.Shortages.Add(1)
			l.config.OnShortage()
		}
		select {
		case <-l.closed:
			return nil, net.ErrClosed
		case <-time.NewTimer(pause).C:
		}
		if short {
			pause = min(2*pause, acceptPauseMax)
		}
	}
}

// logRefusal logs that a connection was closed because its client is at the limit.
func (l *Listener) logRefusal(peer netip.Addr) {
	if events := l.refusals.count(l.now()); events > 0 {
		l.config.Log.LogAttrs(context.Background(), slog.LevelWarn,
			"connection closed: its client has as many as one may have (--connections-per-address, at most a fifth of --connections)",
			slog.String("network", fields.LoggedNetwork(peer)), slog.Int("limit", l.clientLimit.limit), slog.Int("refused", events))
	}
}

// eventLog limits a log message to one line for each logInterval, and counts the events in between.
type eventLog struct {
	events int           // since the last line
	next   time.Duration // earliest time of the next line
}

// count counts an event. If a log line is due, count returns the number of events since the last line, otherwise 0.
func (e *eventLog) count(now time.Duration) (events int) {
	e.events++
	if now < e.next {
		return 0
	}
	events = e.events
	e.events, e.next = 0, now+logInterval
	return events
}

// Close ends all calls of Accept. It leaves connections open. Further calls return the first result.
func (l *Listener) Close() error {
	l.closeOnce.Do(func() {
		close(l.closed)
		l.closeErr = l.Listener.Close()
	})
	return l.closeErr
}

const (
	// acceptGrace is how long a stopping listener still accepts connections. The kernel resets connections that are
	// waiting in its backlog when the listener is closed.
	acceptGrace = 10 * time.Millisecond
	// drainGrace is how long DrainListeners waits for requests that clients have already sent. A client gets an error
	// if its connection is closed before its request is read.
	drainGrace = 250 * time.Millisecond
	// drainPause is the interval between checks for open connections.
	drainPause = 5 * time.Millisecond
)

// stopAccepting closes the listener after acceptGrace, or at once if the listener has no deadlines.
func (l *Listener) stopAccepting() {
	timed, ok := l.Listener.(interface {
		SetDeadline(deadline time.Time) error
	})
	if !ok || timed.SetDeadline(l.began.Add(l.now()+acceptGrace)) != nil {
		_ = l.Close()
	}
}

// drained reports whether the listener is closed and has no open connections.
func (l *Listener) drained() bool {
	select {
	case <-l.closed:
		return len(l.permits) == 0
	default:
		return false
	}
}

// DrainListeners closes the listeners and waits until all connections are closed, at most for drainGrace. Then it
// closes the idle connections, unless stop has ended.
func DrainListeners(stop context.Context, listeners []*Listener) {
	ctx, cancel := context.WithTimeout(stop, drainGrace)
	defer cancel()
	for _, l := range listeners {
		l.stopAccepting()
	}
	ticker := time.NewTicker(drainPause)
	defer ticker.Stop()
	for ctx.Err() == nil && slices.ContainsFunc(listeners, func(l *Listener) bool { return !l.drained() }) {
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	for _, l := range listeners {
		_ = l.Close() // fasthttp closes it again and gets the same error
		for _, c := range l.idle.all() {
			if since := c.idleSince.Load(); stop.Err() == nil && since > 0 && c.idleSince.CompareAndSwap(since, evicted) {
				_ = c.Close() // Conn.Read returns an error to the goroutine that serves c
			}
		}
	}
}

// isShortage reports whether an error of Accept means that no file descriptor or memory is left.
func isShortage(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) ||
		errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.ENOMEM)
}

// isConnError reports whether an error of Accept concerns a single connection that failed before its accept. The manual
// page accept(2) says of such errors: "treat them like EAGAIN by retrying". EBADF and EINVAL concern the listener.
func isConnError(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno) && errno != syscall.EBADF && errno != syscall.EINVAL
}

// TLSConfig returns a configuration for HTTP/1.1 over TLS 1.2 or later. It returns nil if certificate is nil.
func TLSConfig(certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error), clock func() time.Time) *tls.Config {
	if certificate == nil {
		return nil
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: certificate, Time: clock,
	}
}

// evicted is the value of Conn.idleSince for a connection that will be closed.
const evicted int64 = -1

// idleConns finds the idle connection with the oldest use (Conn.lastUse). It is a heap of all open connections,
// ordered by the use that evict has seen (Conn.lastSeenUse). Requests do not update the heap, so a connection may have
// been used later, and evict checks the first connections of the heap again.
type idleConns struct {
	mu   sync.Mutex
	open connHeap
}

// evictStepsMax is the maximum number of connections that one call of evict checks.
const evictStepsMax = 64

func (s *idleConns) add(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.lastSeenUse = c.lastUse
	heap.Push(&s.open, c)
}

func (s *idleConns) remove(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	heap.Remove(&s.open, c.heapIndex)
}

// evict returns the idle connection with the oldest use, and marks it with evicted. The caller must close it. evict
// returns nil if the first evictStepsMax connections are busy; a busy connection counts as used now.
func (s *idleConns) evict(now int64) *Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range min(evictStepsMax, len(s.open)) {
		c := s.open[0]
		switch since := c.idleSince.Load(); {
		case since > c.lastSeenUse:
			c.lastSeenUse = since
		case since > 0 && c.idleSince.CompareAndSwap(since, evicted):
			return c
		default:
			c.lastSeenUse = now
		}
		heap.Fix(&s.open, 0)
	}
	return nil
}

func (s *idleConns) all() []*Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*Conn(nil), s.open...)
}

// connHeap implements heap.Interface.
type connHeap []*Conn

func (h connHeap) Len() int           { return len(h) }
func (h connHeap) Less(i, j int) bool { return h[i].lastSeenUse < h[j].lastSeenUse }

func (h connHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapIndex, h[j].heapIndex = i, j
}

// Push implements heap.Interface.
func (h *connHeap) Push(c any) {
	c.(*Conn).heapIndex = len(*h)
	*h = append(*h, c.(*Conn))
}

// Pop implements heap.Interface.
func (h *connHeap) Pop() any {
	last := len(*h) - 1
	c := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return c
}

const (
	// clientFractionMax: one client may have at most 1/clientFractionMax of Config.MaxConns.
	clientFractionMax = 5
	// clientIPv6Bits is the prefix length of an IPv6 client. Providers assign a /64 to a household, whose devices
	// choose the other 64 bits freely.
	clientIPv6Bits = 64
)

// clientLimit limits the open connections of each client.
type clientLimit struct {
	limit  int                   // 0: no limit
	exempt func(netip.Addr) bool // reports whether an address has no limit; may be nil

	mu   sync.Mutex
	open map[netip.Addr]int // number of open connections by keyOf
}

// newClientLimit lowers limit to at most maxConns/clientFractionMax. 0 or less means no limit.
func newClientLimit(limit, maxConns int, exempt func(netip.Addr) bool) *clientLimit {
	limit = max(0, min(limit, max(1, maxConns/clientFractionMax)))
	return &clientLimit{limit: limit, exempt: exempt, open: map[netip.Addr]int{}}
}

// keyOf returns a client's key in open: the IPv4 address or IPv6 prefix, or the zero address if there is no limit.
func (s *clientLimit) keyOf(addr netip.Addr) netip.Addr {
	if s.limit == 0 || !addr.IsValid() || s.exempt != nil && s.exempt(addr) {
		return netip.Addr{}
	}
	if addr.Is6() {
		return netip.PrefixFrom(addr.WithZone(""), clientIPv6Bits).Masked().Addr()
	}
	return addr
}

// acquire counts a new connection of client (a result of keyOf). At the limit it returns false instead.
func (s *clientLimit) acquire(client netip.Addr) bool {
	if !client.IsValid() {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[client] >= s.limit {
		return false
	}
	s.open[client]++
	return true
}

// release undoes a successful acquire.
func (s *clientLimit) release(client netip.Addr) {
	if !client.IsValid() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[client]--; s.open[client] == 0 {
		delete(s.open, client)
	}
}
