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
	// acceptPauseMin is the first pause after a shortage error of Accept, and the pause after an error that concerns
	// only one connection.
	acceptPauseMin = 5 * time.Millisecond
	// acceptPauseMax is the longest pause, because goal O4 requires service within two seconds of the end of a shortage.
	acceptPauseMax = time.Second
	// acceptsToRecover is the number of connections that must be accepted without an error before an episode of errors
	// is over. During a shortage some calls of Accept succeed, and after it the backlog may cause the next shortage;
	// each change would be logged otherwise.
	acceptsToRecover = 256
)

// sendBufferBytes limits the kernel's send buffer of a connection, which could grow to megabytes for a client that does
// not read its answers.
const sendBufferBytes = 128 << 10

// Config configures a Listener. MaxConns is required; all other fields may be zero.
type Config struct {
	// MaxConns is the largest number of open connections, the cap. At the cap, and the ReserveConns beyond it, new
	// connections wait in the kernel's backlog until one closes.
	//
	// Danger: keep it well below the process's limit of open files. Set Concurrency of the HTTP server to at least twice
	// this number, because a worker ends a little later than its connection, and beyond Concurrency the server answers a
	// 503 of its own. Idle connections count as open until a timeout of the server closes them.
	MaxConns int
	// MaxConnsPerClient is the largest number of connections of a client address, at most a fifth of MaxConns; 0 or
	// less means no limit. An IPv6 client is a /64 prefix. Connections beyond the limit are closed without a read.
	MaxConnsPerClient int
	// ExemptClients reports whether an address has no limit, such as that of a proxy, which many clients share.
	ExemptClients func(netip.Addr) bool
	// ReserveConns is the number of connections that are accepted beyond the cap, each for one answer (Conn.Reserve).
	ReserveConns int
	// FirstRequestBytesMax is the largest first request of a connection that is buffered here before the server
	// allocates its own buffers (see awaitFirstRequest); 0 means that none is.
	FirstRequestBytesMax int
	// TLS, unless nil, makes connections speak TLS; connections other than TCP are then closed.
	TLS *tls.Config
	// Express may answer requests before the server reads them; it may be nil.
	Express Express
	// LoadShedder sheds requests under overload; nil means that none are shed.
	LoadShedder *LoadShedder
	// Log gets a record when an episode of Accept errors begins and another when it ends; it may be nil.
	Log *slog.Logger
	// After waits for the pauses; nil means time.After.
	After func(time.Duration) <-chan time.Time
	// Counts, unless nil, is updated.
	Counts *Counts
	// OnShortage is called when no connection can be accepted because descriptors or memory are short, OnFull when the
	// cap is reached, and OnRoom when there is room again. They must not block, and may be nil.
	OnShortage, OnFull, OnRoom func()
}

// Counts counts the connections of any number of listeners.
type Counts struct {
	Open            atomic.Int64  // open now
	Accepted        atomic.Uint64 // all, also those that were closed at once
	OverClientLimit atomic.Uint64 // closed at once, because the client had reached its limit
	Reserve         atomic.Uint64 // accepted beyond the cap
	Shortages       atomic.Uint64 // failures to accept because descriptors or memory were short
}

// Listen wraps ln. Its Accept retries after a shortage instead of returning an error, which would end the server. It
// retries with pauses from 5 ms doubling to 1 s when the process or the machine is out of descriptors or memory
// (EMFILE, ENFILE, ENOBUFS, ENOMEM), and after 5 ms when a connection failed before it was accepted (ECONNABORTED,
// EPROTO and the network errors of accept(2)). Other errors are returned. It also limits the number of open
// connections.
//
// Close ends every call of Accept with net.ErrClosed. Accept returns connections of type *Conn.
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
		Listener: ln, config: c, permits: make(chan struct{}, c.MaxConns), closed: make(chan struct{}),
		clientLimit: newClientLimit(c.MaxConnsPerClient, c.MaxConns, c.ExemptClients), reserve: reserveConns{limit: c.ReserveConns},
	}
	if l.rounds = c.LoadShedder.schedulingRounds(c.Log); l.rounds == nil && runtime.GOMAXPROCS(0) == 1 {
		l.rounds = &schedulingRounds{singleProcessor: true, ended: true}
	}
	return l
}

// Listener accepts connections under a cap. permits holds one token for each open connection below the cap, and one for
// each call of Accept that waits for a connection with a permit.
type Listener struct {
	net.Listener
	config      Config
	permits     chan struct{}
	clientLimit *clientLimit
	reserve     reserveConns
	silent      silentConns
	rounds      *schedulingRounds // nil: connections do not yield
	full        atomic.Bool       // the cap is reached, and OnFull was called
	closed      chan struct{}
	closeOnce   sync.Once
	closeErr    error

	mu                sync.Mutex
	acceptErrors      uint64 // errors of the present episode; 0 if there is none
	acceptsSinceError int    // connections accepted since the last error
}

// Accept waits for a permit, or takes a reserve place, and then waits for a connection whose client is below its limit.
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
			permitted = l.tryAcquire()
		}
		if conn := l.newConn(conn, permitted); conn != nil {
			return conn, nil
		}
	}
}

// tryAcquire takes a permit if there is one.
func (l *Listener) tryAcquire() bool {
	select {
	case l.permits <- struct{}{}:
		return true
	default:
		return false
	}
}

// acquire waits for a permit. With reserve places it does not wait, and returns false if there is no permit: the next
// connection then takes a reserve place.
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

// newConn returns the Conn of an accepted connection. It closes the connection and returns nil if the client has
// reached its limit, or if TLS is wanted and the connection is not TCP.
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
		_ = conn.Close() // no data can be lost
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
		return c
	}
	l.config.Counts.Reserve.Add(1)
	if oldest := l.reserve.add(c); oldest != nil {
		_ = oldest.Close() // its worker gets an error
	}
	return c
}

// acceptRetrying retries Accept until it returns a connection or a permanent error, or the listener is closed.
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

// recordAcceptError counts an error. The first one begins an episode and is logged.
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

// Close ends Accept. Open connections stay open. Every call returns the result of the first.
func (l *Listener) Close() error {
	l.closeOnce.Do(func() {
		close(l.closed)
		l.closeErr = l.Listener.Close()
	})
	return l.closeErr
}

// isShortage reports whether no connection can be accepted until descriptors or memory are free again.
func isShortage(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) ||
		errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.ENOMEM)
}

// isConnError reports whether only one connection failed before it was accepted. accept(2): "treat them like EAGAIN by
// retrying".
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
