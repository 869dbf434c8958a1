package httpapi

import (
	"context"
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
	// connsDefault is the cap where Patience names none.
	connsDefault = 16384
)

// Patience says how a patient listener behaves. The zero value is good.
type Patience struct {
	// MaxConns is how many accepted connections may be open at once; 0 means
	// 16384. At the cap nothing is accepted until one closes: newcomers wait
	// in the backlog of the kernel.
	//
	// Danger, three times. Keep it well below the limit of open files, which
	// it shares with the log and the collectors. Keep the Concurrency of the
	// HTTP server at twice this or more: a worker outlives its connection for
	// a moment, and beyond Concurrency the server answers a 503 of its own,
	// which is not our error object. And idle connections count: only the
	// timeouts of the server ever free the place of a silent client.
	MaxConns int
	// Log gets a line when an episode of errors begins and one when it is
	// over. Nil means no lines.
	Log *slog.Logger
	// After makes the pauses; nil means time.After.
	After func(time.Duration) <-chan time.Time

	strain *strain // hears of shortages; nil: nobody does
}

// Patient wraps ln so that a shortage doesn't end the server: Accept retries,
// with pauses from 5 ms doubling to 1 s, when the process or the machine is
// out of descriptors or memory (EMFILE, ENFILE, ENOBUFS, ENOMEM), and after
// 5 ms when a connection broke before it was accepted (ECONNABORTED, EPROTO
// and the network errors that accept(2) passes on). Other errors are returned.
// It also caps the open connections.
//
// Close ends every Accept, waiting ones too, with net.ErrClosed. There is no
// goroutine behind it. The connections can be kept alive where they are of TCP,
// may be closed more than once, and arm their deadlines only when they matter:
// those must be set by the goroutine that reads and writes.
func Patient(ln net.Listener, p Patience) net.Listener {
	if p.MaxConns <= 0 {
		p.MaxConns = connsDefault
	}
	if p.Log == nil {
		p.Log = slog.New(slog.DiscardHandler)
	}
	if p.After == nil {
		p.After = func(d time.Duration) <-chan time.Time { return time.NewTimer(d).C }
	}
	return &patient{
		Listener: ln,
		log:      p.Log,
		after:    p.After,
		slots:    make(chan struct{}, p.MaxConns),
		closed:   make(chan struct{}),
		strain:   p.strain,
	}
}

// patient is the listener. slots holds one token for each open connection,
// and one for each Accept under way.
type patient struct {
	net.Listener
	log   *slog.Logger
	after func(time.Duration) <-chan time.Time
	slots chan struct{}

	strain    *strain // nil: nobody wants to know
	closed    chan struct{}
	closeOnce sync.Once
	closeErr  error

	mu      sync.Mutex
	episode uint64 // errors of the present episode; 0 outside one
	calm    int    // connections accepted since the last error
}

// Accept waits for a place under the cap, then for a connection.
func (l *patient) Accept() (net.Conn, error) {
	select {
	case <-l.closed:
		return nil, net.ErrClosed
	default:
	}
	if !l.takeSlot() {
		return nil, net.ErrClosed
	}
	conn, err := l.acceptPatiently()
	if err != nil {
		<-l.slots
		return nil, err
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		return &slottedTCP{
			gatherer{lazyDeadlines: lazyDeadlines{Conn: conn}, tcp: tcp, yields: runtime.GOMAXPROCS(0) == 1},
			slot{slots: l.slots}, peerAddress(conn.RemoteAddr()),
		}, nil
	}
	return &slotted{lazyDeadlines{Conn: conn}, slot{slots: l.slots}}, nil
}

// takeSlot waits for a place under the cap; false when the listener was closed.
func (l *patient) takeSlot() bool {
	select {
	case l.slots <- struct{}{}:
		return true
	default:
	}
	if l.strain != nil {
		l.strain.full.Begin(l.strain.clock())
		defer func() { l.strain.full.Calm(l.strain.clock()) }()
	}
	select {
	case <-l.closed:
		return false
	case l.slots <- struct{}{}:
		return true
	}
}

// acceptPatiently accepts until it has a connection, an error that patience
// does not mend, or the listener is closed.
func (l *patient) acceptPatiently() (net.Conn, error) {
	pause := acceptPauseMin
	for {
		conn, err := l.Listener.Accept()
		if err == nil {
			l.noteConn()
			return conn, nil
		}
		short := isShortage(err)
		if !short && !isLostConn(err) {
			return nil, err
		}
		l.noteError(err)
		if short && l.strain != nil {
			l.strain.short.Seen(l.strain.clock())
		}
		select {
		case <-l.closed:
			return nil, net.ErrClosed
		case <-l.after(pause):
		}
		if short {
			pause = min(2*pause, acceptPauseMax)
		}
	}
}

// noteError opens an episode, with a line in the log, or counts on in it.
func (l *patient) noteError(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calm = 0
	l.episode++
	if l.episode == 1 {
		l.log.LogAttrs(context.Background(), slog.LevelWarn,
			"accepting connections is held up; retrying (raise the limit of open files or lower the connection cap)",
			slog.String("error", err.Error()))
	}
}

// noteConn ends an episode after acceptCalm connections without an error.
func (l *patient) noteConn() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.episode == 0 {
		return
	}
	if l.calm++; l.calm < acceptCalm {
		return
	}
	l.log.LogAttrs(context.Background(), slog.LevelInfo,
		"accepting connections works again", slog.Uint64("errors", l.episode))
	l.episode, l.calm = 0, 0
}

// Close ends Accept for good. Open connections stay open. Every call gives
// the result of the first.
func (l *patient) Close() error {
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

// slot is a connection's place under the cap; the first free gives it back.
// The server closes a connection twice when a shutdown meets an idle one.
type slot struct {
	slots chan struct{}
	freed atomic.Bool
}

func (s *slot) free() {
	if s.freed.CompareAndSwap(false, true) {
		<-s.slots
	}
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
	c.slot.free()
	return err
}

// slottedTCP is slotted for connections of TCP, with what the server looks for
// in them.
type slottedTCP struct {
	gatherer
	slot slot
	peer netip.Addr
}

// Close is that of slotted.
func (c *slottedTCP) Close() error {
	err := c.Conn.Close()
	c.slot.free()
	return err
}

// SetKeepAlive is that of *net.TCPConn.
func (c *slottedTCP) SetKeepAlive(on bool) error { return c.tcp.SetKeepAlive(on) }

// SetKeepAlivePeriod is that of *net.TCPConn.
func (c *slottedTCP) SetKeepAlivePeriod(period time.Duration) error {
	return c.tcp.SetKeepAlivePeriod(period)
}
