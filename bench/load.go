//go:build linux

package main

import (
	"context"
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
	// sleepMax is how long the load sleeps at most, before it looks at its context.
	sleepMax = 20 * time.Millisecond
	// spinTime is how long before a moment it stops sleeping and only looks: a sleep ends 15 to 40 µs late on a virtual machine, now and
	// then 100, and the server would be charged for it.
	spinTime = 100 * time.Microsecond
	// drainTimeout is how long it waits at its end for what is still owed, and for connections to be opened.
	drainTimeout = 10 * time.Second
	// latencyRange is the longest that is told apart.
	latencyRange = 60 * time.Second
	// loadConnectionsMax and loadRateMax bound what may be asked for.
	loadConnectionsMax = 10_000
	loadRateMax        = 1_000_000
)

// errGone and errNoAnswer are why a load ends early: what was counted until then says nothing.
var (
	errGone     = errors.New("the target is gone")
	errNoAnswer = errors.New("the target has answered nothing")
)

// clients is clients of one kind, and what they met. Each has one connection.
type clients struct {
	name        string
	requests    requestSource
	connections int
	// rate is how many requests a second are sent together, each at its intended moment and timed from there, so that a server that
	// stops for a while is charged for all that would have come (no coordinated omission). 0: each connection sends as soon as its
	// answer is there.
	rate float64
	// drops: a request whose moment comes while all connections wait is never sent, where otherwise it waits and is charged for it.
	dropLate   bool
	reconnects bool          // a new connection for each request
	startAfter time.Duration // when it begins
	// net gives each perAddress clients a source address of their own in 127.net.0.0/16; 0 is the kernel's choice.
	net        byte
	perAddress int
	// unexpected tells an answer that is not as it must be; nil takes all. It is given what was read last: the whole answer, as a rule.
	unexpected func(status int, answer []byte) bool

	idle chan *connection // at a rate: lines that wait for a moment, each in its turn
	next uint64           // the first moment that nothing was sent for
	results
}

// results is what became of the requests of the measured time, whenever their answer came.
type results struct {
	intended, sent, dropped        uint64 // intended = sent + dropped, but for those still waiting at the end
	answers, unexpectedCount, lost uint64 // odd: strange; lost: without an answer
	bytes                          uint64
	statuses                       map[int]uint64 // of answers that were not strange
	firstUnexpected                string         // the first strange answer
	elapsed                        time.Duration
	latency                        *hdrhistogram.Histogram // of answers 200, in nanoseconds: from the sending, at a rate from the intended moment
	lastAnswer                     time.Duration
}

// load is one run against one address. All of it belongs to one goroutine, on one thread, with an epoll of its own: Go's poller wakes a
// goroutine up to a millisecond late, which the server would be charged for.
type load struct {
	address         string
	groups          []*clients
	seed            uint64
	warmup, measure time.Duration // warmup is not counted
	drain           time.Duration // 0 = loadPatience
	// begins is called just before the measured time begins, and ends when the last answer of it is there: the moments to read the
	// server's CPU time and its counters. The load stands still meanwhile, and no request is charged for that. Both may be nil.
	begins, ends func() error

	generator time.Duration // CPU time of the thread that asked. Without a rate: near to the elapsed time, the load is the limit

	target               unix.Sockaddr
	family               int
	epoll                int
	events               []unix.EpollEvent
	conns                []connection
	random               *rand.Rand
	buffer               []byte
	began                time.Time     // all moments are counted from it
	base                 time.Duration // moment 0 of groups
	opens, closes        time.Duration // the measured time; nothing is sent from closes on
	waiting, outstanding int           // requests in flight; those of them that are counted
	dialling             int
	lostInARow           int // connections lost since the last answer
	answered             uint64
}

// run puts the load on the target. It ends with an error that says so when the target is gone, and with that of the context.
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

// prepare finds the target and makes the lines, which are not connected yet.
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

// socketAddress is an address as sockets want it.
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

// drive connects, warms up, measures, and waits for what is owed.
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

// connect opens all lines but those of fresh clients, and waits for them.
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

// open begins the measured time. The moments are moved by what begins takes.
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

// start sends the first requests. At a rate the moments come by themselves.
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

// poll sends and receives until a moment, or until it is done.
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

// wait waits for events, to the microsecond where a moment is near: epoll itself counts in milliseconds.
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

// pause is how long nothing needs to be done. At a rate it is 0 while an answer is awaited: waking up takes longer than many an
// answer, and would be part of its latency. Clients that drop are many, beside others: they leave their core to those meanwhile.
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

// drained tells that nothing is owed any more.
func (l *load) drained() bool {
	for _, g := range l.groups {
		if g.rate > 0 && l.dueAt(g) < l.closes {
			return false
		}
	}
	return l.outstanding == 0
}

// countUnanswered counts as lost what is still owed: requests in flight, and at a rate those whose moment has passed. At a rate the time goes on
// until the last answer: a target that is behind is not faster for it.
func (l *load) countUnanswered(ended time.Duration) {
	for i := range l.conns {
		if c := &l.conns[i]; c.counted {
			c.lost++
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

// threadTime is the CPU time that the thread has used so far.
func threadTime() time.Duration {
	var usage unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_THREAD, &usage) // it has no way to fail
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
