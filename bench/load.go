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
	// spinTime is how long before a due time the load stops sleeping and polls instead. On a virtual machine a sleep
	// ends 15 to 40 µs late, sometimes 100, and the delay would count as latency of the server.
	spinTime = 100 * time.Microsecond
	// drainTimeout limits the time for opening connections, and the wait for outstanding responses at the end.
	drainTimeout = 10 * time.Second
	// latencyLimit is the longest latency that is measured.
	latencyLimit = 60 * time.Second
	// loadConnectionsMax and loadRateMax are the largest values of the flags.
	loadConnectionsMax = 10_000
	loadRateMax        = 1_000_000
)

// Errors that end a load early. The results are then meaningless.
var (
	errTargetGone = errors.New("the target is gone")
	errNoAnswer   = errors.New("no answer from the target")
)

// clients is a group of clients with the same settings, and the results of the group. Each client has one connection.
type clients struct {
	name        string
	requests    requestSource
	connections int
	// rate is the number of requests per second of the whole group (open loop). Latency is measured from the time when
	// the request was due, so a stall of the server delays all requests due meanwhile (no coordinated omission). With
	// rate 0 each connection sends its next request after the response to the last one (closed loop).
	rate float64
	// dropLate drops requests that are due while all connections are busy, instead of sending them late.
	dropLate   bool
	reconnects bool          // each request uses a new connection
	pipeline   uint64        // requests sent together; 0 = 1
	startAfter time.Duration // delay of the first request
	// subnet makes every perAddress clients share a source address in 127.subnet.0.0/16; 0 lets the kernel choose.
	subnet     byte
	perAddress int
	// isUnexpected reports whether a response is wrong; nil accepts all responses. body is the data of the last read,
	// usually the whole response.
	isUnexpected func(status int, body []byte) bool

	idle       chan *connection // open loop: connections without a request
	nextNumber uint64           // of the next request that becomes due
	results
}

// results counts the requests that were due in the measured time. Their responses may arrive after it.
type results struct {
	intended, sent, dropped        uint64 // intended = sent + dropped + never sent
	answers, unexpectedCount, lost uint64
	bytes                          uint64
	statuses                       map[int]uint64 // of expected responses
	firstUnexpected                string
	elapsed                        time.Duration
	latency                        *hdrhistogram.Histogram // of responses with status 200, in nanoseconds
	lastAnswer                     time.Duration
}

// load is one run against one address. It runs in one goroutine that is locked to a thread and has its own epoll
// instance. Go's network poller wakes goroutines up to a millisecond late, which would count as latency of the server.
type load struct {
	address         string
	tls             *tls.Config // nil without TLS
	groups          []*clients
	seed            uint64
	warmup, measure time.Duration // warmup is before measure and not counted
	drain           time.Duration // 0 = drainTimeout
	// onMeasureStart is called just before the measured time, and onMeasureEnd after the last response. They can read
	// the server's CPU time and counters. They do not delay requests. Both may be nil.
	onMeasureStart, onMeasureEnd func() error

	generatorCPU time.Duration // CPU time of the load's thread. If it is close to elapsed, the load generator is the bottleneck.

	target                    unix.Sockaddr
	family                    int
	epollFD                   int
	events                    []unix.EpollEvent
	conns                     []connection
	random                    *rand.Rand
	buffer                    []byte
	startTime                 time.Time     // other times are relative to it
	scheduleStart             time.Duration // due times are counted from here
	measureStart, measureEnd  time.Duration // no request is sent after measureEnd
	inFlight, countedInFlight int           // requests without a response; those among them that results counts
	dialling                  int
	consecutiveLosses         int // connections lost since the last response
	answerCount               uint64
}

// run generates the load until it is complete, an error occurs or ctx ends.
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
	addr, err := net.ResolveTCPAddr("tcp", l.address)
	if err != nil {
		return err
	}
	if l.epollFD, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return err
	}
	l.family, l.target = socketAddress(addr.AddrPort().Addr().Unmap(), addr.Port)
	l.random, l.buffer, l.startTime = rand.New(rand.NewPCG(l.seed, 0)), make([]byte, 64<<10), time.Now()
	if l.drain == 0 {
		l.drain = drainTimeout
	}
	for _, g := range l.groups {
		g.results = results{statuses: map[int]uint64{}, latency: hdrhistogram.New(1, int64(latencyLimit), 3)}
		g.pipeline = max(1, g.pipeline)
		g.nextNumber, g.idle = 0, make(chan *connection, g.connections)
		for i := range g.connections {
			c := connection{clients: g, number: len(l.conns), socket: -1}
			if g.subnet != 0 {
				address := i / g.perAddress
				_, c.source = socketAddress(netip.AddrFrom4([4]byte{127, g.subnet, byte(address / 250), byte(1 + address%250)}), 0)
			}
			l.conns = append(l.conns, c)
		}
	}
	l.events = make([]unix.EpollEvent, min(len(l.conns), 1024))
	return nil
}

// socketAddress converts an address for package unix.
func socketAddress(address netip.Addr, port int) (family int, sockaddr unix.Sockaddr) {
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
	_ = unix.Close(l.epollFD)
}

func (l *load) now() time.Duration { return time.Since(l.startTime) }

// drive connects, warms up, measures and waits for outstanding responses.
func (l *load) drive(ctx context.Context) error {
	if err := l.connect(ctx); err != nil {
		return err
	}
	l.scheduleStart, l.measureStart, l.measureEnd = l.now(), math.MaxInt64, math.MaxInt64
	if l.warmup > 0 {
		if err := errors.Join(l.start(), l.poll(ctx, l.scheduleStart+l.warmup, nil)); err != nil {
			return err
		}
	}
	if err := l.startMeasuring(); err != nil {
		return err
	}
	cpuBefore := threadTime()
	if l.warmup == 0 {
		if err := l.start(); err != nil {
			return err
		}
	}
	if err := l.poll(ctx, l.measureEnd, nil); err != nil {
		return err
	}
	l.generatorCPU = threadTime() - cpuBefore
	sendEnd := l.now()
	if err := l.poll(ctx, sendEnd+l.drain, l.drained); err != nil {
		return err
	}
	if l.onMeasureEnd != nil {
		if err := l.onMeasureEnd(); err != nil {
			return err
		}
	}
	l.countUnanswered(sendEnd)
	if l.answerCount == 0 {
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
		return fmt.Errorf("%w: %d connections were not established within %v", errTargetGone, l.dialling, drainTimeout)
	}
	return nil
}

// startMeasuring begins the measured time. It moves all due times by the time that onMeasureStart took.
func (l *load) startMeasuring() error {
	pausedAt := l.now()
	if l.onMeasureStart != nil {
		if err := l.onMeasureStart(); err != nil {
			return err
		}
	}
	l.measureStart = l.now()
	l.measureEnd = l.measureStart + l.measure
	l.scheduleStart += l.measureStart - pausedAt
	return nil
}

// start sends the first request of each client in closed loop, and makes clients in open loop wait for a due request.
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

// poll sends requests and receives responses until end, or until done returns true.
func (l *load) poll(ctx context.Context, end time.Duration, done func() bool) error {
	for lastCheck := l.now(); done == nil || !done(); {
		now := l.now()
		if now >= end {
			return nil
		}
		if now-lastCheck > sleepMax {
			lastCheck = now
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		if err := l.sendDue(now); err != nil {
			return err
		}
		n, err := l.wait(l.sleepTime(now, end))
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

// wait waits for events. Up to sleepMax it uses ppoll, because the timeout of epoll has a precision of milliseconds.
func (l *load) wait(timeout time.Duration) (events int, err error) {
	if timeout > 0 && timeout < sleepMax {
		timespec := unix.NsecToTimespec(timeout.Nanoseconds())
		if _, err := unix.Ppoll([]unix.PollFd{{Fd: int32(l.epollFD), Events: unix.POLLIN}}, &timespec, nil); err != nil {
			return 0, err
		}
		timeout = 0
	}
	return unix.EpollWait(l.epollFD, l.events, int(timeout/time.Millisecond))
}

// sleepTime returns how long the load may sleep. In open loop it is 0 while a response is outstanding, because waking
// up takes longer than the server takes for many responses. Groups with dropLate are excepted: they have many
// connections and run beside another load, which needs the core.
func (l *load) sleepTime(now, end time.Duration) time.Duration {
	limit := min(end-now, sleepMax)
	for _, g := range l.groups {
		if g.rate == 0 || l.scheduleStart == 0 {
			continue
		}
		if l.inFlight > 0 && !g.dropLate {
			return 0
		}
		if due := l.dueAt(g); due < l.measureEnd {
			limit = min(limit, due-now-spinTime)
		}
	}
	return max(0, limit)
}

// drained reports whether all requests were sent and answered.
func (l *load) drained() bool {
	for _, g := range l.groups {
		if g.rate > 0 && l.dueAt(g) < l.measureEnd {
			return false
		}
	}
	return l.countedInFlight == 0
}

// countUnanswered counts outstanding and unsent requests as lost. In open loop the elapsed time extends to the last
// response, so that a slow target does not look faster.
func (l *load) countUnanswered(sendEnd time.Duration) {
	for i := range l.conns {
		if c := &l.conns[i]; c.counted {
			c.lost += c.pipeline
		}
	}
	for _, g := range l.groups {
		g.elapsed = sendEnd - l.measureStart
		if g.rate == 0 {
			continue
		}
		g.elapsed = max(l.measureEnd, g.lastAnswer) - l.measureStart
		for ; l.dueAt(g) < l.measureEnd; g.nextNumber++ {
			if l.dueAt(g) >= l.measureStart {
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
