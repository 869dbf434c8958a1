package conn

import (
	"context"
	"crypto/tls"
	"errors"
	"hash/maphash"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// acceptPauseMin is the pause after the first of consecutive shortage errors (lack of file descriptors or memory, see
	// isShortage), and after an error of a single connection (isConnError).
	acceptPauseMin = 5 * time.Millisecond
	// acceptPauseMax is the longest pause after a shortage error. A node must accept connections again within two
	// seconds of the end of a shortage.
	acceptPauseMax = time.Second
	// acceptsToRecover is the number of connections in a row that must be accepted before the log says that accepting
	// works again. During a shortage some calls of Accept succeed, and accepting the backlog afterwards may cause the next
	// shortage. If one connection were enough, every such change would be logged.
	acceptsToRecover = 256
)

// sendBufferBytes limits the kernel's send buffer of a connection. The buffer could grow to megabytes if a client does
// not read responses.
const sendBufferBytes = 128 << 10

// Config configures a Listener. Only MaxConns is required.
type Config struct {
	// MaxConns is the cap: the largest number of open connections, without ReserveConns. At the cap a new connection
	// replaces the one that has been idle longest. If none is idle, it is accepted in reserve. If ReserveConns is 0, no
	// connection is replaced: further ones wait in the kernel's backlog until an open one closes.
	//
	// Danger: keep the cap well below the process's limit of open files. Set Concurrency of the fasthttp.Server to at
	// least twice the cap: a worker ends a little later than its connection, and beyond Concurrency fasthttp sends its
	// own 503.
	MaxConns int
	// MaxConnsPerClient is the largest number of open connections of one client, which is an IPv4 address or an IPv6
	// /64 prefix. An IPv6 /56 may have 4 times as many, and a /48 16 times. Values above a fifth of MaxConns count as a
	// fifth. 0 or less means no limit. Connections beyond the limit are closed at once.
	MaxConnsPerClient int
	// ExemptClients reports whether MaxConnsPerClient does not apply to an address, such as that of a proxy.
	ExemptClients func(netip.Addr) bool
	// ReserveConns is the number of connections that are accepted beyond the cap, each for one response. See
	// Conn.Reserve.
	ReserveConns int
	// ReadTimeout and IdleTimeout are those of the fasthttp.Server. Its read deadlines show since when a connection is
	// idle.
	ReadTimeout, IdleTimeout time.Duration
	// FirstRequestBytesMax is the number of bytes of a connection's first request that may be buffered before fasthttp
	// reads it. See awaitFirstRequest. 0 disables the buffer.
	FirstRequestBytesMax int
	// TLS turns on TLS. Connections other than TCP are then closed. Nil means no TLS.
	TLS *tls.Config
	// Express may answer requests before fasthttp reads them. It may be nil.
	Express Express
	// LoadShedder rejects some requests under overload (load shedding). Nil means that none are rejected.
	LoadShedder *LoadShedder
	// Log gets one message when Accept begins to fail, one when it works again, at most one a minute about clients at
	// MaxConnsPerClient, and one about a proxy that is not in ExemptClients. It may be nil.
	Log *slog.Logger
	// Clock returns the time, for the log. It may be nil, if the clients have no limit.
	Clock func() time.Time
	// After replaces time.After in tests. It may be nil.
	After func(time.Duration) <-chan time.Time
	// Counts is updated by the Listener. It may be nil.
	Counts *Counts
	// OnShortage is called for each error of Accept because of a lack of file descriptors or memory. It must not block,
	// and may be nil.
	OnShortage func()
	// OnFull is called when the cap is reached, and OnRoom when a connection can be accepted below the cap again. They
	// must not block, and may be nil.
	OnFull, OnRoom func()
}

// Counts counts the connections of any number of listeners.
type Counts struct {
	Open            atomic.Int64  // currently open
	Accepted        atomic.Uint64 // includes those that were closed at once
	OverClientLimit atomic.Uint64 // closed at once because of MaxConnsPerClient
	Reserve         atomic.Uint64 // accepted beyond the cap
	IdleClosed      atomic.Uint64 // closed at the cap while idle, for a new connection
	Shortages       atomic.Uint64 // failures to accept for lack of file descriptors or memory
	Proxies         proxySearch   // for proxies that are not in ExemptClients
}

// Listen wraps ln in a Listener, whose Accept returns connections of type *Conn. Close ends every call of Accept with
// net.ErrClosed.
//
// Accept retries after temporary errors, because fasthttp stops at an error. If file descriptors or memory are short
// (EMFILE, ENFILE, ENOBUFS, ENOMEM), it retries with pauses that double from 5 ms to 1 s. If a connection failed before
// it was accepted (ECONNABORTED, EPROTO and the network errors of accept(2)), it retries after 5 ms. It returns all
// other errors.
func Listen(ln net.Listener, c Config) *Listener {
	noop := func() {}
	for _, callback := range []*func(){&c.OnShortage, &c.OnFull, &c.OnRoom} {
		if *callback == nil {
			*callback = noop
		}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.After == nil {
		c.After = func(d time.Duration) <-chan time.Time { return time.NewTimer(d).C }
	}
	if c.Counts == nil {
		c.Counts = new(Counts)
	}
	l := &Listener{
		Listener: ln, config: c, began: time.Now(), //nolint:forbidigo // deadlines are in real time, not in Config.Clock
		seed: maphash.MakeSeed(), permits: make(chan struct{}, c.MaxConns), closed: make(chan struct{}),
		clientLimit: newClientLimit(c.MaxConnsPerClient, c.MaxConns, c.ExemptClients), reserve: reserveConns{limit: c.ReserveConns},
	}
	if l.rounds = c.LoadShedder.schedulingRounds(c.Log); l.rounds == nil && runtime.GOMAXPROCS(0) == 1 {
		l.rounds = &schedulingRounds{singleProcessor: true, ended: true}
	}
	return l
}

// Listener accepts connections up to the cap Config.MaxConns, and up to Config.ReserveConns beyond it (in reserve).
type Listener struct {
	net.Listener
	config      Config
	began       time.Time     // when Listen was called; idle connections are ordered by the time since then
	permits     chan struct{} // one token for each connection below the cap, and for each call of Accept that awaits one
	clientLimit *clientLimit
	reserve     reserveConns
	idle        idleConns
	silent      silentConns       // connections that have not received a byte yet
	rounds      *schedulingRounds // make busy connections yield to new requests; nil: they do not yield
	seed        maphash.Seed      // for Counts.Proxies
	full        atomic.Bool       // OnFull was called, and OnRoom was not called since
	closed      chan struct{}
	closeOnce   sync.Once
	closeErr    error

	mu                sync.Mutex
	acceptErrors      uint64 // number of errors since accepting last worked; 0 while it works
	acceptsSinceError int    // connections accepted since the last error
}

// Accept takes a permit, the right to one connection below the cap. If all permits are in use, it waits for one, or
// goes on without a permit if there is a reserve. Then it waits for a connection whose client is below its limit. If it
// has no permit by then, it closes an idle connection for the new one.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		permitted, err := l.acquire()
		if err != nil {
			return nil, err
		}
		conn, err := l.acceptRetrying()
		if err != nil {
			if permitted {
				<-l.permits
			}
			return nil, err
		}
		if !permitted { // a permit may have become free meanwhile
			permitted = l.tryAcquire() || l.replaceIdle()
		}
		if conn := l.newConn(conn, permitted); conn != nil {
			return conn, nil
		}
	}
}

// replaceIdle closes the connection that has been idle longest, and takes its permit. It returns false if no connection
// is idle.
func (l *Listener) replaceIdle() bool {
	c := l.idle.evict()
	if c == nil {
		return false
	}
	l.config.Counts.IdleClosed.Add(1)
	_ = c.Close() // the goroutine that serves the connection gets an error
	return l.tryAcquire()
}

func (l *Listener) tryAcquire() bool {
	select {
	case l.permits <- struct{}{}:
		return true
	default:
		return false
	}
}

// acquire takes a permit. If all permits are in use, it waits for one. If there is a reserve, it returns false instead,
// and the next connection is accepted in reserve (beyond the cap).
func (l *Listener) acquire() (permitted bool, err error) {
	select {
	case <-l.closed:
		return false, net.ErrClosed
	default:
	}
	if l.tryAcquire() {
		return true, nil
	}
	l.reportFull()
	if l.reserve.limit == 0 {
		select {
		case <-l.closed:
			return false, net.ErrClosed
		case l.permits <- struct{}{}:
			l.reportRoom()
			return true, nil
		}
	}
	if l.reserve.halfFull() {
		select {
		case <-l.closed:
			return false, net.ErrClosed
		case <-l.config.After(reserveAcceptPause):
		}
	}
	return l.tryAcquire(), nil
}

// newConn returns the Conn for an accepted connection. It closes the connection and returns nil if the client is at its
// limit, or if TLS is configured and the connection is not TCP.
func (l *Listener) newConn(conn net.Conn, permitted bool) net.Conn {
	c := &Conn{permit: permit{listener: l, reserve: !permitted}, peer: PeerOf(conn.RemoteAddr())}
	c.permit.clientKey = l.clientLimit.keyOf(c.peer)
	c.Conn = conn
	c.tcp, _ = conn.(*net.TCPConn)
	if l.config.TLS != nil && c.tcp == nil || !l.clientLimit.acquire(c.permit.clientKey) {
		if permitted {
			<-l.permits
		}
		l.config.Counts.OverClientLimit.Add(1)
		if c.permit.clientKey.IsValid() {
			l.logRefusal(c.peer)
		}
		_ = conn.Close() // nothing was written, so no data can be lost
		return nil
	}
	l.config.Counts.Open.Add(1)
	if c.tcp != nil {
		_ = c.tcp.SetWriteBuffer(sendBufferBytes)
		c.shedder, c.rounds, c.sample = l.config.LoadShedder, l.rounds, uint32(l.config.Counts.Accepted.Load()) //nolint:gosec // G115: any number is good
		if l.config.TLS != nil {
			c.startTLS(l.config.TLS)
		}
	}
	if permitted {
		c.express = l.config.Express
		l.idle.add(c)
		return c
	}
	l.config.Counts.Reserve.Add(1)
	if oldest := l.reserve.add(c); oldest != nil {
		_ = oldest.Close() // the worker that serves it gets an error
	}
	return c
}

// acceptRetrying retries Accept of the wrapped listener after temporary errors, see Listen.
func (l *Listener) acceptRetrying() (net.Conn, error) {
	pause := acceptPauseMin
	for {
		conn, err := l.Listener.Accept()
		if err == nil {
			l.recordAccept()
			l.config.Counts.Accepted.Add(1)
			return conn, nil
		}
		short := isShortage(err)
		if !short && !isConnError(err) {
			return nil, err
		}
		l.recordAcceptError(err)
		if short {
			l.config.Counts.Shortages.Add(1)
			l.config.OnShortage()
		}
		select {
		case <-l.closed:
			return nil, net.ErrClosed
		case <-l.config.After(pause):
		}
		if short {
			pause = min(2*pause, acceptPauseMax)
		}
	}
}

// recordAcceptError counts an error of Accept. It logs only the first error since accepting last worked.
func (l *Listener) recordAcceptError(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acceptsSinceError = 0
	l.acceptErrors++
	if l.acceptErrors == 1 {
		l.config.Log.LogAttrs(context.Background(), slog.LevelWarn,
			"can't accept connections; retrying (raise the limit of open files or lower the connection cap)",
			slog.String("error", err.Error()))
	}
}

// recordAccept counts an accepted connection. After acceptsToRecover connections without an error, it logs that
// accepting works again.
func (l *Listener) recordAccept() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.acceptErrors == 0 {
		return
	}
	if l.acceptsSinceError++; l.acceptsSinceError < acceptsToRecover {
		return
	}
	l.config.Log.LogAttrs(context.Background(), slog.LevelInfo,
		"accepting connections works again", slog.Uint64("errors", l.acceptErrors))
	l.acceptErrors, l.acceptsSinceError = 0, 0
}

// Close ends all calls of Accept. It does not close connections. Every call of Close returns the result of the first.
func (l *Listener) Close() error {
	l.closeOnce.Do(func() {
		close(l.closed)
		l.closeErr = l.Listener.Close()
	})
	return l.closeErr
}

// isShortage reports whether an error of Accept means a lack of file descriptors or memory.
func isShortage(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) ||
		errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.ENOMEM)
}

// isConnError reports whether an error of Accept means that a single connection failed before it was accepted. The
// manual page accept(2) says of such errors: "treat them like EAGAIN by retrying".
func isConnError(err error) bool {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return false
	}
	switch errno {
	case syscall.ECONNABORTED, syscall.ECONNRESET, syscall.EINTR, syscall.EPERM,
		syscall.EPROTO, syscall.ENOPROTOOPT, syscall.EOPNOTSUPP,
		syscall.ENETDOWN, syscall.ENETUNREACH, syscall.EHOSTDOWN, syscall.EHOSTUNREACH:
		return true
	}
	return false
}
