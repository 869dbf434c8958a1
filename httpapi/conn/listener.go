package conn

import (
	"context"
	"crypto/tls"
	"errors"
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
	// acceptPauseMin is the first pause after an error of Accept, and the
	// only one after an error that concerns a single connection.
	acceptPauseMin = 5 * time.Millisecond
	// acceptPauseMax bounds the pause: goal O4 wants service again
	// within two seconds of the end of a shortage.
	acceptPauseMax = time.Second
	// acceptsToRecover is how many connections in a row must come in without an
	// error before an episode is over. Under a shortage Accept succeeds now
	// and then, and at its end the backlog comes in at once and may run into
	// it again; without this, each time would be two lines in the log.
	acceptsToRecover = 256
)

// sendBufferBytes is how much of its answers a kernel keeps for a client that does not take them; it would let that
// grow to megabytes.
const sendBufferBytes = 128 << 10

// Config says how a Listener behaves. MaxConns must be there; everything else has a good zero value.
type Config struct {
	// MaxConns is how many accepted connections may be open at once. At the cap nothing is accepted until one closes,
	// except for ReserveConns: new connections wait in the backlog of the kernel.
	//
	// Danger, three times. Keep it well below the limit of open files, which is that of the whole process. Keep the
	// Concurrency of the HTTP server at twice this or more: a worker outlives its connection for a moment, and beyond
	// Concurrency the server answers a 503 of its own. And idle connections count: only the timeouts of the server free
	// the place of a silent client.
	MaxConns int
	// MaxConnsPerClient is how many connections a client address may have, at most a fifth of MaxConns; 0 or less
	// means any number. IPv6 addresses count by their first 64 bits. One that comes beyond is closed at once and
	// nothing of it is read.
	MaxConnsPerClient int
	// ExemptClients are addresses without a limit: proxies, whose clients share their address.
	ExemptClients func(netip.Addr) bool
	// ReserveConns is how many connections are accepted beyond the cap, to be answered once (Conn.Reserve); 0 means
	// that they wait in the backlog.
	ReserveConns int
	// FirstRequestBytesMax is how many bytes of a connection's first request are awaited before the server takes
	// buffers for it; 0: none.
	FirstRequestBytesMax int
	// TLS is put on connections; those that are not of TCP are closed then. Nil: none.
	TLS *tls.Config
	// Express may answer requests before the server reads them. Nil: it answers none.
	Express Express
	// LoadShedder sheds requests; nil: no request is too old.
	LoadShedder *LoadShedder
	// Log gets a line when an episode of errors begins and one when it is over. Nil means no lines.
	Log *slog.Logger
	// After makes the pauses; nil means time.After.
	After func(time.Duration) <-chan time.Time
	// Counts are counted up; nil: none.
	Counts *Counts
	// Shortages is called when nothing can be accepted for want of descriptors or memory, OnFull when the cap is
	// reached, and OnRoom when it isn't any more. They must not block. Nil: not called.
	OnShortage, OnFull, OnRoom func()
}

// Counts counts the connections of any number of listeners.
type Counts struct {
	Open            atomic.Int64  // now
	Accepted        atomic.Uint64 // all, those that were closed at once included
	OverClientLimit atomic.Uint64 // closed at once: their address had as many as it may
	Reserve         atomic.Uint64 // beyond the cap
	Shortages       atomic.Uint64 // times that none could be accepted for want of descriptors or memory
}

// Listen wraps ln so that a shortage doesn't end the server: Accept retries, with pauses from 5 ms doubling to 1 s,
// when the process or the machine is out of descriptors or memory (EMFILE, ENFILE, ENOBUFS, ENOMEM), and after 5 ms
// when a connection broke before it was accepted (ECONNABORTED, EPROTO and the network errors that accept(2) passes
// on). Other errors are returned. It also caps the open connections.
//
// Close ends every Accept, waiting ones too, with net.ErrClosed. There is no goroutine behind it. What Accept gives
// is a *Conn.
func Listen(ln net.Listener, c Config) *Listener {
	nothing := func() {}
	for _, tell := range []*func(){&c.OnShortage, &c.OnFull, &c.OnRoom} {
		if *tell == nil {
			*tell = nothing
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
		Listener: ln, config: c, permits: make(chan struct{}, c.MaxConns), closed: make(chan struct{}),
		clientLimit: newClientLimit(c.MaxConnsPerClient, c.MaxConns, c.ExemptClients), reserve: reserveConns{limit: c.ReserveConns},
	}
	if l.rounds = c.LoadShedder.schedulingRounds(c.Log); l.rounds == nil && runtime.GOMAXPROCS(0) == 1 {
		l.rounds = &schedulingRounds{singleProcessor: true, ended: true}
	}
	return l
}

// Listener accepts connections under a cap. permits holds one token for each open connection that is no reserve, and
// one for each Accept that waits below the cap.
type Listener struct {
	net.Listener
	config      Config
	permits     chan struct{}
	clientLimit *clientLimit
	reserve     reserveConns
	silent      silentConns
	rounds      *schedulingRounds // nil: connections do not yield
	full        atomic.Bool       // the cap is reached, and Full was called
	closed      chan struct{}
	closeOnce   sync.Once
	closeErr    error

	mu                sync.Mutex
	acceptErrors      uint64 // errors of the present episode; 0 outside one
	acceptsSinceError int    // connections accepted since the last error
}

// Accept waits for a permit, or takes a reserve place, then for a connection whose client is below its limit.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		placed, err := l.acquire()
		if err != nil {
			return nil, err
		}
		conn, err := l.acceptRetrying()
		if err != nil {
			if placed {
				<-l.permits
			}
			return nil, err
		}
		if !placed { // it may have taken its time to come
			placed = l.tryAcquire()
		}
		if conn := l.newConn(conn, placed); conn != nil {
			return conn, nil
		}
	}
}

// tryAcquire takes a place under the cap if there is one.
func (l *Listener) tryAcquire() bool {
	select {
	case l.permits <- struct{}{}:
		return true
	default:
		return false
	}
}

// acquire waits for a permit. Where there are reserve places it does not wait: false means one of those.
func (l *Listener) acquire() (bool, error) {
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
		case <-l.config.After(reservePause):
		}
	}
	return l.tryAcquire(), nil
}

// newConn gives a connection its place, nil when its address has all that it may, or when it can't be encrypted.
func (l *Listener) newConn(conn net.Conn, placed bool) net.Conn {
	c := &Conn{permit: permit{listener: l, reserve: !placed}, peer: PeerOf(conn.RemoteAddr())}
	c.permit.clientKey = l.clientLimit.keyOf(c.peer)
	c.Conn = conn
	c.tcp, _ = conn.(*net.TCPConn)
	if l.config.TLS != nil && c.tcp == nil || !l.clientLimit.acquire(c.permit.clientKey) {
		if placed {
			<-l.permits
		}
		l.config.Counts.OverClientLimit.Add(1)
		_ = conn.Close() // nothing was read or written
		return nil
	}
	l.config.Counts.Open.Add(1)
	if c.tcp != nil {
		_ = c.tcp.SetWriteBuffer(sendBufferBytes)
		c.shedder, c.rounds, c.sample = l.config.LoadShedder, l.rounds, uint32(l.config.Counts.Accepted.Load()) //nolint:gosec // G115: any number will do
		if l.config.TLS != nil {
			c.startTLS(l.config.TLS)
		}
	}
	if placed {
		c.express = l.config.Express
		return c
	}
	l.config.Counts.Reserve.Add(1)
	if oldest := l.reserve.add(c); oldest != nil {
		_ = oldest.Close() // its worker notices
	}
	return c
}

// acceptRetrying accepts until it has a connection, an error that patience
// does not mend, or the listener is closed.
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

// recordAcceptError opens an episode, with a line in the log, or counts on in it.
func (l *Listener) recordAcceptError(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acceptsSinceError = 0
	l.acceptErrors++
	if l.acceptErrors == 1 {
		l.config.Log.LogAttrs(context.Background(), slog.LevelWarn,
			"accepting connections is held up; retrying (raise the limit of open files or lower the connection cap)",
			slog.String("error", err.Error()))
	}
}

// recordAccept ends an episode after acceptsToRecover connections without an error.
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

// Close ends Accept for good. Open connections stay open. Every call gives
// the result of the first.
func (l *Listener) Close() error {
	l.closeOnce.Do(func() {
		close(l.closed)
		l.closeErr = l.Listener.Close()
	})
	return l.closeErr
}

// isShortage: nothing can be accepted until descriptors or memory are free again.
func isShortage(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) ||
		errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.ENOMEM)
}

// isConnError: one connection was lost on the way in; the next may be fine.
// accept(2): "treat them like EAGAIN by retrying".
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
