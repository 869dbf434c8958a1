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
	// acceptCalm is how many connections in a row must come in without an
	// error before an episode is over. Under a shortage Accept succeeds now
	// and then, and at its end the backlog comes in at once and may run into
	// it again; without this, each time would be two lines in the log.
	acceptCalm = 256
)

// sendBuffer is how much of its answers a kernel keeps for a client that does not take them; it would let that grow to megabytes.
const sendBuffer = 128 << 10

// Config says how a Listener behaves. MaxConns must be there; everything else has a good zero value.
type Config struct {
	// MaxConns is how many accepted connections may be open at once. At the cap nothing is accepted until one closes, but for Spare ones:
	// newcomers wait in the backlog of the kernel.
	//
	// Danger, three times. Keep it well below the limit of open files, which the process has for all that it does. Keep the Concurrency of
	// the HTTP server at twice this or more: a worker outlives its connection for a moment, and beyond Concurrency the server answers a 503
	// of its own. And idle connections count: only the timeouts of the server ever free the place of a silent client.
	MaxConns int
	// PerAddress is how many connections a client address may have, at most a fifth of MaxConns; 0 or less means any number. IPv6 addresses
	// count by their first 64 bits. One that comes beyond is closed at once and nothing of it is read.
	PerAddress int
	// Exempt are addresses that may have any number: proxies, all of whose clients share theirs.
	Exempt func(netip.Addr) bool
	// Spare is how many newcomers are let in at the cap, to be answered one by one (Conn.Spare); 0 means that they wait in the backlog.
	Spare int
	// FirstMax is how many bytes of a connection's first request are awaited before the server takes buffers for it; 0: none.
	FirstMax int
	// TLS is put on connections; those that are not of TCP are closed then. Nil: none.
	TLS *tls.Config
	// Overload sheds requests; nil: no request is too old.
	Overload *Overload
	// Log gets a line when an episode of errors begins and one when it is over. Nil means no lines.
	Log *slog.Logger
	// After makes the pauses; nil means time.After.
	After func(time.Duration) <-chan time.Time
	// Counts are counted up; nil: nobody wants to know.
	Counts *Counts
	// Short is called when nothing can be accepted for want of descriptors or memory, Full when the cap is reached, and Room when it isn't any
	// more. They must not block. Nil: not called.
	Short, Full, Room func()
}

// Counts counts the connections of any number of listeners.
type Counts struct {
	Open     atomic.Int64  // now
	Accepted atomic.Uint64 // all, those that were closed at once included
	Crowded  atomic.Uint64 // closed at once: their address had as many as it may
	Spare    atomic.Uint64 // beyond the cap
	Short    atomic.Uint64 // times that none could be accepted for want of descriptors or memory
}

// Listen wraps ln so that a shortage doesn't end the server: Accept retries, with pauses from 5 ms doubling to 1 s, when the process or the
// machine is out of descriptors or memory (EMFILE, ENFILE, ENOBUFS, ENOMEM), and after 5 ms when a connection broke before it was accepted
// (ECONNABORTED, EPROTO and the network errors that accept(2) passes on). Other errors are returned. It also caps the open connections.
//
// Close ends every Accept, waiting ones too, with net.ErrClosed. There is no goroutine behind it. What Accept gives is a *Conn.
func Listen(ln net.Listener, c Config) *Listener {
	nothing := func() {}
	for _, tell := range []*func(){&c.Short, &c.Full, &c.Room} {
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
		Listener: ln, config: c, slots: make(chan struct{}, c.MaxConns), closed: make(chan struct{}),
		shares: newShares(c.PerAddress, c.MaxConns, c.Exempt), spares: spares{most: c.Spare},
	}
	if l.rounds = c.Overload.takeTurns(c.Log); l.rounds == nil && runtime.GOMAXPROCS(0) == 1 {
		l.rounds = &rounds{alone: true, ended: true}
	}
	return l
}

// Listener accepts connections under a cap. slots holds one token for each open connection that has no spare place, and one for each
// Accept under way below the cap.
type Listener struct {
	net.Listener
	config    Config
	slots     chan struct{}
	shares    *shares
	spares    spares
	newcomers newcomers
	rounds    *rounds     // how connections give way; nil: they don't
	full      atomic.Bool // the cap is reached, and Full was called
	closed    chan struct{}
	closeOnce sync.Once
	closeErr  error

	mu      sync.Mutex
	episode uint64 // errors of the present episode; 0 outside one
	calm    int    // connections accepted since the last error
}

// Accept waits for a place under the cap, or beyond it where there are spare ones, then for a connection whose address has its share.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		placed, err := l.place()
		if err != nil {
			return nil, err
		}
		conn, err := l.acceptPatiently()
		if err != nil {
			if placed {
				<-l.slots
			}
			return nil, err
		}
		if !placed { // it may have taken its time to come
			placed = l.placeNow()
		}
		if conn := l.settle(conn, placed); conn != nil {
			return conn, nil
		}
	}
}

// placeNow takes a place under the cap if there is one.
func (l *Listener) placeNow() bool {
	select {
	case l.slots <- struct{}{}:
		return true
	default:
		return false
	}
}

// place waits for a place under the cap. With spare places it does not wait: false is one of those.
func (l *Listener) place() (bool, error) {
	select {
	case <-l.closed:
		return false, net.ErrClosed
	default:
	}
	if l.placeNow() {
		return true, nil
	}
	l.noteFull()
	if l.spares.most == 0 {
		select {
		case <-l.closed:
			return false, net.ErrClosed
		case l.slots <- struct{}{}:
			l.noteRoom()
			return true, nil
		}
	}
	if l.spares.crowded() {
		select {
		case <-l.closed:
			return false, net.ErrClosed
		case <-l.config.After(sparePause):
		}
	}
	return l.placeNow(), nil
}

// settle gives a connection its place, nil when its address has all that it may, or when it can't be encrypted.
func (l *Listener) settle(conn net.Conn, placed bool) net.Conn {
	c := &Conn{slot: slot{of: l, spare: !placed}, peer: PeerOf(conn.RemoteAddr())}
	c.slot.sharer = l.shares.sharer(c.peer)
	c.Conn = conn
	c.tcp, _ = conn.(*net.TCPConn)
	if l.config.TLS != nil && c.tcp == nil || !l.shares.take(c.slot.sharer) {
		if placed {
			<-l.slots
		}
		l.config.Counts.Crowded.Add(1)
		_ = conn.Close() // nothing was read or written
		return nil
	}
	l.config.Counts.Open.Add(1)
	if c.tcp != nil {
		_ = c.tcp.SetWriteBuffer(sendBuffer)
		c.overload, c.rounds = l.config.Overload, l.rounds
		if l.config.TLS != nil {
			c.secure(l.config.TLS)
		}
	}
	if placed {
		return c
	}
	l.config.Counts.Spare.Add(1)
	if oldest := l.spares.take(c); oldest != nil {
		_ = oldest.Close() // its worker notices
	}
	return c
}

// acceptPatiently accepts until it has a connection, an error that patience
// does not mend, or the listener is closed.
func (l *Listener) acceptPatiently() (net.Conn, error) {
	pause := acceptPauseMin
	for {
		conn, err := l.Listener.Accept()
		if err == nil {
			l.noteConn()
			l.config.Counts.Accepted.Add(1)
			return conn, nil
		}
		short := isShortage(err)
		if !short && !isLostConn(err) {
			return nil, err
		}
		l.noteError(err)
		if short {
			l.config.Counts.Short.Add(1)
			l.config.Short()
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

// noteError opens an episode, with a line in the log, or counts on in it.
func (l *Listener) noteError(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calm = 0
	l.episode++
	if l.episode == 1 {
		l.config.Log.LogAttrs(context.Background(), slog.LevelWarn,
			"accepting connections is held up; retrying (raise the limit of open files or lower the connection cap)",
			slog.String("error", err.Error()))
	}
}

// noteConn ends an episode after acceptCalm connections without an error.
func (l *Listener) noteConn() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.episode == 0 {
		return
	}
	if l.calm++; l.calm < acceptCalm {
		return
	}
	l.config.Log.LogAttrs(context.Background(), slog.LevelInfo,
		"accepting connections works again", slog.Uint64("errors", l.episode))
	l.episode, l.calm = 0, 0
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

// isShortage: nothing can be accepted until somebody gives something back.
func isShortage(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) ||
		errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.ENOMEM)
}

// isLostConn: one connection was lost on the way in; the next may be fine.
// accept(2): "treat them like EAGAIN by retrying".
func isLostConn(err error) bool {
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
