//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/netip"
	"runtime"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"
)

const (
	// sleepMax is the longest sleep between checks of the context.
	sleepMax = 20 * time.Millisecond
	// spinTime is how long before a due time the load stops sleeping and polls: sleeps on a virtual machine end 15 to
	// 40 µs late, sometimes 100, which would be charged to the server.
	spinTime = 100 * time.Microsecond
	// drainTimeout bounds opening connections, and waiting for outstanding answers at the end.
	drainTimeout = 10 * time.Second
	// latencyRange is the longest latency that is measured.
	latencyRange = 60 * time.Second
	// loadConnectionsMax and loadRateMax bound the settings.
	loadConnectionsMax = 10_000
	loadRateMax        = 1_000_000
)

// Reasons to end a load early; what was counted until then means nothing.
var (
	errGone     = errors.New("the target is gone")
	errNoAnswer = errors.New("no answer from the target")
)

// clients is a group of clients of one kind, each with one connection, and their results.
type clients struct {
	name        string
	requests    requestSource
	connections int
	// rate is the total number of requests per second, each sent at its due time and measured from then, so that a
	// stalled server is charged for all requests due meanwhile (no coordinated omission). 0: each connection sends
	// its next request when the answer has arrived.
	rate float64
	// dropLate drops a request that is due while all connections are busy, instead of sending it late.
	dropLate   bool
	reconnects bool          // each request uses a new connection
	pipeline   uint64        // requests sent together; 0 = 1
	startAfter time.Duration // delay of the first request
	// net gives each perAddress clients a source address in 127.net.0.0/16; 0 lets the kernel choose.
	net        byte
	perAddress int
	// unexpected reports whether a response is wrong; nil accepts all. It gets the last bytes read, usually the whole
	// response.
	unexpected func(status int, answer []byte) bool

	idle chan *connection // at a rate: connections that wait for a due time
	next uint64           // number of the first request that has not been due yet
	results
}

// results counts the requests of the measured time, whenever their answers arrive.
type results struct {
	intended, sent, dropped        uint64 // sent + dropped + those still waiting at the end
	answers, unexpectedCount, lost uint64
	bytes                          uint64
	statuses                       map[int]uint64 // of expected responses
	firstUnexpected                string
	elapsed                        time.Duration
	latency                        *hdrhistogram.Histogram // of answers with status 200, in nanoseconds
	lastAnswer                     time.Duration
}

// load is one run against one address. It belongs to one goroutine on one thread with its own epoll instance, because
// Go's network poller wakes goroutines up to a millisecond late, which would be charged to the server.
type load struct {
	address         string
	tls             *tls.Config // nil without TLS
	groups          []*clients
	seed            uint64
	warmup, measure time.Duration // not counted
	drain           time.Duration // 0 = drainTimeout
	// begins is called just before the measured time, ends after the last answer: times to read the server's CPU time
	// and counters. The load pauses meanwhile, which is charged to no request. Both may be nil.
	begins, ends func() error

	generator time.Duration // CPU time of the load's thread; close to elapsed, the load itself is the limit

	target               unix.Sockaddr
	family               int
	epoll                int
	events               []unix.EpollEvent
	conns                []connection
	random               *rand.Rand
	buffer               []byte
	began                time.Time     // all times are relative to it
	base                 time.Duration // time 0 of all clients
	opens, closes        time.Duration // the measured time; nothing is sent after closes
	waiting, outstanding int           // requests in flight; those that are counted
	dialling             int
	lostInARow           int // connections lost since the last answer
	answered             uint64
}

// run puts the load on the target, until its end, an error or the end of ctx.
func (l *load) run(ctx context.Context) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := l.prepare(); err != nil {
		return fmt.Errorf("load on %s: %w", l.address, err)
	}
	defer l.close()
	if err := l.drive(ctx); err != nil {
		return fmt.Errorf("load on %s: %w", l.address, err)
	}
	return nil
}

// prepare resolves the target and allocates the connections.
func (l *load) prepare() error {
	found, err := net.ResolveTCPAddr("tcp", l.address)
	if err != nil {
		return err
	}
	if l.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return err
	}
	l.family, l.target = socketAddress(found.AddrPort().Addr().Unmap(), found.Port)
	l.random, l.buffer, l.began = rand.New(rand.NewPCG(l.seed, 0)), make([]byte, 64<<10), time.Now()
	if l.drain == 0 {
		l.drain = drainTimeout
	}
	for _, g := range l.groups {
		g.results = results{statuses: map[int]uint64{}, latency: hdrhistogram.New(1, int64(latencyRange), 3)}
		g.pipeline = max(1, g.pipeline)
		g.next, g.idle = 0, make(chan *connection, g.connections)
		for i := range g.connections {
			one := connection{clients: g, number: len(l.conns), socket: -1}
			if g.net != 0 {
				address := i / g.perAddress
				_, one.source = socketAddress(netip.AddrFrom4([4]byte{127, g.net, byte(address / 250), byte(1 + address%250)}), 0)
			}
			l.conns = append(l.conns, one)
		}
	}
	l.events = make([]unix.EpollEvent, min(len(l.conns), 1024))
	return nil
}

// socketAddress converts an address for sockets.
func socketAddress(address netip.Addr, port int) (family int, found unix.Sockaddr) {
	if address.Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: port, Addr: address.As4()}
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Port: port, Addr: address.As16()}
}

func (l *load) close() {
	for i := range l.conns {
		if l.conns[i].socket >= 0 {
			_ = unix.Close(l.conns[i].socket)
		}
	}
	_ = unix.Close(l.epoll)
}

func (l *load) now() time.Duration { return time.Since(l.began) }

// drive connects, warms up, measures and waits for outstanding answers.
func (l *load) drive(ctx context.Context) error {
	if err := l.connect(ctx); err != nil {
		return err
	}
	l.base, l.opens, l.closes = l.now(), math.MaxInt64, math.MaxInt64
	if l.warmup > 0 {
		if err := errors.Join(l.start(), l.poll(ctx, l.base+l.warmup, nil)); err != nil {
			return err
		}
	}
	if err := l.open(); err != nil {
		return err
	}
	used := threadTime()
	if l.warmup == 0 {
		if err := l.start(); err != nil {
			return err
		}
	}
	if err := l.poll(ctx, l.closes, nil); err != nil {
		return err
	}
	l.generator = threadTime() - used
	ended := l.now()
	if err := l.poll(ctx, ended+l.drain, l.drained); err != nil {
		return err
	}
	if l.ends != nil {
		if err := l.ends(); err != nil {
			return err
		}
	}
	l.countUnanswered(ended)
	if l.answered == 0 {
		return errNoAnswer
	}
	return nil
}

// connect opens all connections except those of reconnecting clients.
func (l *load) connect(ctx context.Context) error {
	for i := range l.conns {
		if c := &l.conns[i]; !c.reconnects {
			if err := l.dial(c); err != nil {
				return err
			}
		}
	}
	if err := l.poll(ctx, l.now()+drainTimeout, func() bool { return l.dialling == 0 }); err != nil {
		return err
	}
	if l.dialling > 0 {
		return fmt.Errorf("%w: %d connections did not come about within %v", errGone, l.dialling, drainTimeout)
	}
	return nil
}

// open begins the measured time. Due times are moved by the duration of begins.
func (l *load) open() error {
	stood := l.now()
	if l.begins != nil {
		if err := l.begins(); err != nil {
			return err
		}
	}
	l.opens = l.now()
	l.closes = l.opens + l.measure
	l.base += l.opens - stood
	return nil
}

// start sends the first requests of clients without a rate.
func (l *load) start() error {
	for i := range l.conns {
		if c := &l.conns[i]; c.state == connIdle || c.reconnects {
			if err := l.nextRequest(c, l.now()); err != nil {
				return err
			}
		}
	}
	return nil
}

// poll sends and receives until end, or until done returns true.
func (l *load) poll(ctx context.Context, end time.Duration, done func() bool) error {
	for looked := l.now(); done == nil || !done(); {
		now := l.now()
		if now >= end {
			return nil
		}
		if now-looked > sleepMax {
			looked = now
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		if err := l.sendDue(now); err != nil {
			return err
		}
		n, err := l.wait(l.pause(now, end))
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		for i := range max(0, n) {
			if err := l.handle(&l.conns[l.events[i].Fd]); err != nil {
				return err
			}
		}
	}
	return nil
}

// wait waits for events, with microsecond precision when a due time is near: epoll counts in milliseconds.
func (l *load) wait(longest time.Duration) (events int, err error) {
	if longest > 0 && longest < sleepMax {
		limit := unix.NsecToTimespec(longest.Nanoseconds())
		if _, err := unix.Ppoll([]unix.PollFd{{Fd: int32(l.epoll), Events: unix.POLLIN}}, &limit, nil); err != nil {
			return 0, err
		}
		longest = 0
	}
	return unix.EpollWait(l.epoll, l.events, int(longest/time.Millisecond))
}

// pause returns how long the load may sleep. At a rate it is 0 while an answer is outstanding, because waking up
// takes longer than many answers. Clients that drop late requests are many and run beside others: they leave them the
// core.
func (l *load) pause(now, end time.Duration) time.Duration {
	longest := min(end-now, sleepMax)
	for _, g := range l.groups {
		if g.rate == 0 || l.base == 0 {
			continue
		}
		if l.waiting > 0 && !g.dropLate {
			return 0
		}
		if moment := l.dueAt(g); moment < l.closes {
			longest = min(longest, moment-now-spinTime)
		}
	}
	return max(0, longest)
}

// drained reports whether no request is due or outstanding.
func (l *load) drained() bool {
	for _, g := range l.groups {
		if g.rate > 0 && l.dueAt(g) < l.closes {
			return false
		}
	}
	return l.outstanding == 0
}

// countUnanswered counts outstanding and overdue requests as lost. At a rate the elapsed time extends to the last
// answer, so that a slow target does not look faster.
func (l *load) countUnanswered(ended time.Duration) {
	for i := range l.conns {
		if c := &l.conns[i]; c.counted {
			c.lost += c.pipeline
		}
	}
	for _, g := range l.groups {
		g.elapsed = ended - l.opens
		if g.rate == 0 {
			continue
		}
		g.elapsed = max(l.closes, g.lastAnswer) - l.opens
		for ; l.dueAt(g) < l.closes; g.next++ {
			if l.dueAt(g) >= l.opens {
				g.intended++
				g.lost++
			}
		}
	}
}

// threadTime returns the CPU time of the calling thread.
func threadTime() time.Duration {
	var usage unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_THREAD, &usage) // cannot fail
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
