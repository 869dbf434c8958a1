package httpapi

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
	// connsDefault is the cap where Patience names none.
	connsDefault = 16384
)

// sendBuffer is how much of its answers a kernel keeps for a client that does not take them; it would let that grow to megabytes.
const sendBuffer = 128 << 10

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
	// PerAddress is how many connections a client address may have, at most a fifth of MaxConns; 0 means any number. IPv6 addresses count
	// by their first 64 bits. One that comes beyond is closed at once and nothing of it is read: whoever opens so many waits for no answer.
	PerAddress int
	// Exempt are addresses that may have any number: proxies, all of whose clients share theirs.
	Exempt func(netip.Addr) bool
	// Spare is how many newcomers are let in at the cap, to be refused one by one (spares); 0 means that they wait in the backlog.
	Spare int
	watch *watch // nil: no request is too old
	// firstMax is how many bytes of a connection's first request are awaited (awaitFirst); 0: none.
	firstMax int
	// TLS is put on connections; those that are not of TCP are closed then. Nil: none.
	TLS *tls.Config
	// rounds are how connections give way; nil: on one processor they step back.
	rounds *rounds

	strain *strain    // hears of shortages; nil: nobody does
	conns  *connTally // counts; nil: nobody wants to know
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
func Patient(ln net.Listener, p Patience) net.Listener { return newPatient(ln, p) }

func newPatient(ln net.Listener, p Patience) *patient {
	if p.MaxConns <= 0 {
		p.MaxConns = connsDefault
	}
	if p.Log == nil {
		p.Log = slog.New(slog.DiscardHandler)
	}
	if p.After == nil {
		p.After = func(d time.Duration) <-chan time.Time { return time.NewTimer(d).C }
	}
	if p.conns == nil {
		p.conns = new(connTally)
	}
	if p.rounds == nil && runtime.GOMAXPROCS(0) == 1 {
		p.rounds = &rounds{alone: true, ended: true}
	}
	return &patient{
		Listener: ln,
		conns:    p.conns,
		log:      p.Log,
		after:    p.After,
		slots:    make(chan struct{}, p.MaxConns),
		closed:   make(chan struct{}),
		shares:   newShares(p.PerAddress, p.MaxConns, p.Exempt),
		spares:   spares{most: p.Spare},
		strain:   p.strain,
		watch:    p.watch,
		firstMax: p.firstMax,
		tls:      p.TLS,
		rounds:   p.rounds,
	}
}

// patient is the listener. slots holds one token for each open connection that
// has no spare place, and one for each Accept under way below the cap.
type patient struct {
	net.Listener
	log   *slog.Logger
	after func(time.Duration) <-chan time.Time
	slots chan struct{}

	shares    *shares
	spares    spares
	full      atomic.Bool // the cap is reached, and strain knows
	watch     *watch
	rounds    *rounds
	firstMax  int
	newcomers newcomers
	strain    *strain // nil: nobody wants to know
	conns     *connTally
	tls       *tls.Config
	closed    chan struct{}
	closeOnce sync.Once
	closeErr  error

	mu      sync.Mutex
	episode uint64 // errors of the present episode; 0 outside one
	calm    int    // connections accepted since the last error
}

// Accept waits for a place under the cap, or beyond it where there are spare ones, then for a connection whose address has its share.
func (l *patient) Accept() (net.Conn, error) {
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
func (l *patient) placeNow() bool {
	select {
	case l.slots <- struct{}{}:
		return true
	default:
		return false
	}
}

// place waits for a place under the cap. With spare places it does not wait: false is one of those.
func (l *patient) place() (bool, error) {
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
		case <-l.after(sparePause):
		}
	}
	return l.placeNow(), nil
}

// settle gives a connection its place, nil when its address has all that it may, or when it can't be encrypted.
func (l *patient) settle(conn net.Conn, placed bool) net.Conn {
	peer := peerAddress(conn.RemoteAddr())
	sharer := l.shares.sharer(peer)
	tcp, isTCP := conn.(*net.TCPConn)
	if l.tls != nil && !isTCP || !l.shares.take(sharer) {
		if placed {
			<-l.slots
		}
		l.conns.crowded.Add(1)
		_ = conn.Close() // nothing was read or written
		return nil
	}
	l.conns.open.Add(1)
	var settled net.Conn
	if isTCP {
		_ = tcp.SetWriteBuffer(sendBuffer)
		whole := &slottedTCP{
			gatherer: gatherer{lazyDeadlines: lazyDeadlines{Conn: conn}, tcp: tcp, rounds: l.rounds, watch: l.watch},
			slot:     slot{of: l, sharer: sharer, spare: !placed}, peer: peer,
		}
		if l.tls != nil {
			whole.secure(l.tls)
		}
		settled = whole
	} else {
		settled = &slotted{lazyDeadlines: lazyDeadlines{Conn: conn}, slot: slot{of: l, sharer: sharer, spare: !placed}}
	}
	if placed {
		return settled
	}
	l.conns.spare.Add(1)
	if oldest := l.spares.take(settled); oldest != nil {
		_ = oldest.Close() // its worker notices
	}
	return settled
}

// acceptPatiently accepts until it has a connection, an error that patience
// does not mend, or the listener is closed.
func (l *patient) acceptPatiently() (net.Conn, error) {
	pause := acceptPauseMin
	for {
		conn, err := l.Listener.Accept()
		if err == nil {
			l.noteConn()
			l.conns.accepted.Add(1)
			return conn, nil
		}
		short := isShortage(err)
		if !short && !isLostConn(err) {
			return nil, err
		}
		l.noteError(err)
		if short {
			l.conns.short.Add(1)
		}
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
