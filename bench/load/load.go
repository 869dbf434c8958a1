//go:build linux

package load

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
	// sleepMax is the longest sleep between two checks of the context.
	sleepMax = 20 * time.Millisecond
	// spinTime is how long before a request is due the generator stops sleeping and polls. On a virtual machine a sleep
	// ends 15 to 40 µs late, sometimes 100 µs. The delay would count as latency of the server.
	spinTime = 100 * time.Microsecond
	// connectTimeout is the limit for opening all connections before the load.
	connectTimeout = 10 * time.Second
	drainDefault   = 10 * time.Second
	// latencyLimit is the longest latency that a histogram records. It records longer latencies as latencyLimit.
	latencyLimit = 60 * time.Second
)

// Run returns these errors when the server does not respond. The results of the load are then meaningless.
var (
	ErrTargetGone = errors.New("the target is gone")
	ErrNoResponse = errors.New("no answer from the target")
)

// Clients is a group of clients with the same settings, and the results of the group. Each client has one connection.
type Clients struct {
	Requests    RequestSource
	Connections int // number of clients
	// Rate is the number of requests per second of the whole group (open loop). Each request has a due time, from which
	// its latency is measured. A stall of the server therefore adds to the latency of every request that becomes due
	// during the stall. With rate 0 each client sends a request as soon as it has the response to its previous request
	// (closed loop).
	Rate float64
	// DropLate drops a request that becomes due when all clients are waiting for responses. Without DropLate the
	// request is sent late.
	DropLate   bool
	Reconnects bool          // open a new connection for each request
	Pipeline   uint64        // requests sent together; 0 means 1
	StartAfter time.Duration // delay of the first request
	// Subnet and PerAddress set the source addresses of the connections: PerAddress clients share each address of
	// 127.Subnet.0.0/16. With Subnet 0 the kernel chooses the address.
	Subnet     byte
	PerAddress int
	// IsUnexpected reports whether a response is wrong. body is the data of the last read, usually the whole
	// response. Without IsUnexpected every response is expected.
	IsUnexpected func(status int, body []byte) bool

	idle       chan *connection // open loop: connections that can send the next due request
	nextNumber uint64           // number of the next request to become due, from 0
	Results
}

// RequestSource generates the requests of clients.
type RequestSource interface {
	// Next appends an HTTP request to dst.
	Next(dst []byte, random *rand.Rand) []byte
}

// Results counts the requests that were due or sent in the measured time. Their responses may arrive later.
type Results struct {
	Intended        uint64 // all counted requests, including those that were dropped or never sent
	Sent            uint64
	Dropped         uint64 // requests that were not sent because no client was free; see Clients.DropLate
	Responses       uint64
	Lost            uint64                  // requests without a response; with a Rate also requests that were never sent
	Bytes           uint64                  // size of all responses
	Statuses        map[int]uint64          // number of expected responses by HTTP status
	Unexpected      uint64                  // number of wrong responses; see Clients.IsUnexpected
	FirstUnexpected string                  // body of the first unexpected response, quoted and shortened
	Elapsed         time.Duration           // measured time; with a Rate it ends with the last response
	Latency         *hdrhistogram.Histogram // latencies of expected responses with status 200, in nanoseconds

	lastResponse time.Duration
}

// Generator generates one load on one address. It runs in one goroutine that is locked to a thread and has its own
// epoll instance. Go's network poller would wake the goroutine up to a millisecond late, and the delay would count as
// latency of the server.
type Generator struct {
	Address string      // host:port
	TLS     *tls.Config // nil without TLS
	Groups  []*Clients
	Seed    uint64        // seed of the random numbers that RequestSource.Next gets
	Warmup  time.Duration // time of the load before the measured time
	Measure time.Duration // measured time
	Drain   time.Duration // longest wait for responses after the measured time; 0 means 10 s
	// Run calls OnMeasureStart just before the measured time, and OnMeasureEnd after the last response. They can read
	// the server's CPU time and counters: the time that they take delays no request. Both may be nil.
	OnMeasureStart, OnMeasureEnd func() error

	// CPU is set by Run to the CPU time of its thread in the measured time. If it is close to Results.Elapsed, the
	// generator limits the load.
	CPU time.Duration
	// Stalled is set by Run to the part of the measured time in which its thread was ready but did not run, because the
	// machine did something else. Such a stall counts as latency of the server.
	Stalled time.Duration

	target                    unix.Sockaddr
	family                    int
	epollFD                   int
	events                    []unix.EpollEvent
	conns                     []connection
	random                    *rand.Rand
	buffer                    []byte
	startTime                 time.Time     // all other times are durations since startTime
	lastNow                   time.Duration // newest result of now
	scheduleStart             time.Duration // time from which due times are counted; 0 until connections are open
	measureStart, measureEnd  time.Duration
	inFlight, countedInFlight int // connections that wait for a response; those of them whose request Results counts
	dialling                  int // connections being opened
	consecutiveLosses         int // connections lost since the last response
	responses                 uint64
}

// Run generates the load and writes the results into g and its groups. It must be called only once.
func (g *Generator) Run(ctx context.Context) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := g.prepare(); err != nil {
		return fmt.Errorf("load on %s: %w", g.Address, err)
	}
	defer g.close()
	if err := g.drive(ctx); err != nil {
		return fmt.Errorf("load on %s: %w", g.Address, err)
	}
	return nil
}

// prepare resolves the address and allocates the connections.
func (g *Generator) prepare() error {
	addr, err := net.ResolveTCPAddr("tcp", g.Address)
	if err != nil {
		return err
	}
	if g.epollFD, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return err
	}
	g.family, g.target = socketAddress(addr.AddrPort().Addr().Unmap(), addr.Port)
	g.random, g.buffer, g.startTime = rand.New(rand.NewPCG(g.Seed, 0)), make([]byte, 64<<10), time.Now()
	if g.Drain == 0 {
		g.Drain = drainDefault
	}
	for _, group := range g.Groups {
		group.Results = Results{Statuses: map[int]uint64{}, Latency: hdrhistogram.New(1, int64(latencyLimit), 3)}
		group.Pipeline = max(1, group.Pipeline)
		group.nextNumber, group.idle = 0, make(chan *connection, group.Connections)
		for i := range group.Connections {
			c := connection{Clients: group, number: len(g.conns), socket: -1}
			if group.Subnet != 0 {
				address := i / group.PerAddress
				_, c.source = socketAddress(netip.AddrFrom4([4]byte{127, group.Subnet, byte(address / 250), byte(1 + address%250)}), 0)
			}
			g.conns = append(g.conns, c)
		}
	}
	g.events = make([]unix.EpollEvent, min(len(g.conns), 1024))
	return nil
}

func socketAddress(address netip.Addr, port int) (family int, sockaddr unix.Sockaddr) {
	if address.Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: port, Addr: address.As4()}
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Port: port, Addr: address.As16()}
}

func (g *Generator) close() {
	for i := range g.conns {
		if g.conns[i].socket >= 0 {
			_ = unix.Close(g.conns[i].socket)
		}
	}
	_ = unix.Close(g.epollFD)
}

// stallMin is the shortest time between two calls of now that counts as a stall. Usually it takes 20 µs.
const stallMin = 200 * time.Microsecond

// now returns the time, and adds a stall of the thread to Stalled.
func (g *Generator) now() time.Duration {
	now := time.Since(g.startTime)
	if now-g.lastNow > stallMin {
		g.Stalled += now - g.lastNow
	}
	g.lastNow = now
	return now
}

// drive opens the connections, generates the load and waits for the last responses.
func (g *Generator) drive(ctx context.Context) error {
	if err := g.connect(ctx); err != nil {
		return err
	}
	g.scheduleStart, g.measureStart, g.measureEnd = g.now(), math.MaxInt64, math.MaxInt64
	if g.Warmup > 0 {
		if err := errors.Join(g.start(), g.poll(ctx, g.scheduleStart+g.Warmup, nil)); err != nil {
			return err
		}
	}
	if err := g.startMeasuring(); err != nil {
		return err
	}
	cpuBefore := threadTime()
	if g.Warmup == 0 {
		if err := g.start(); err != nil {
			return err
		}
	}
	if err := g.poll(ctx, g.measureEnd, nil); err != nil {
		return err
	}
	g.CPU = threadTime() - cpuBefore
	sendEnd, stalled := g.now(), g.Stalled
	if err := g.poll(ctx, sendEnd+g.Drain, g.drained); err != nil {
		return err
	}
	g.Stalled = stalled
	if g.OnMeasureEnd != nil {
		if err := g.OnMeasureEnd(); err != nil {
			return err
		}
	}
	g.countUnanswered(sendEnd)
	if g.responses == 0 {
		return ErrNoResponse
	}
	return nil
}

// connect opens all connections, except those of clients with Reconnects.
func (g *Generator) connect(ctx context.Context) error {
	for i := range g.conns {
		if c := &g.conns[i]; !c.Reconnects {
			if err := g.dial(c); err != nil {
				return err
			}
		}
	}
	if err := g.poll(ctx, g.now()+connectTimeout, func() bool { return g.dialling == 0 }); err != nil {
		return err
	}
	if g.dialling > 0 {
		return fmt.Errorf("%w: %d connections were not established within %v", ErrTargetGone, g.dialling, connectTimeout)
	}
	return nil
}

// startMeasuring calls OnMeasureStart and begins the measured time. It delays all due times by the duration of the
// call.
func (g *Generator) startMeasuring() error {
	pausedAt := g.now()
	if g.OnMeasureStart != nil {
		if err := g.OnMeasureStart(); err != nil {
			return err
		}
	}
	g.measureStart = g.now()
	g.measureEnd, g.Stalled = g.measureStart+g.Measure, 0
	g.scheduleStart += g.measureStart - pausedAt
	return nil
}

// start makes each client send its first request, or wait until a request is due (nextRequest).
func (g *Generator) start() error {
	for i := range g.conns {
		if c := &g.conns[i]; c.state == connIdle || c.Reconnects {
			if err := g.nextRequest(c, g.now()); err != nil {
				return err
			}
		}
	}
	return nil
}

// poll sends requests and receives responses until the time end, or until done returns true. done may be nil.
func (g *Generator) poll(ctx context.Context, end time.Duration, done func() bool) error {
	for lastCheck := g.now(); done == nil || !done(); {
		now := g.now()
		if now >= end {
			return nil
		}
		if now-lastCheck > sleepMax {
			lastCheck = now
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		if err := g.sendDue(now); err != nil {
			return err
		}
		n, err := g.wait(g.sleepTime(now, end))
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		for i := range max(0, n) {
			if err := g.handle(&g.conns[g.events[i].Fd]); err != nil {
				return err
			}
		}
	}
	return nil
}

// wait waits for epoll events. For a timeout below sleepMax it waits in ppoll, because the timeout of epoll_wait is in
// whole milliseconds.
func (g *Generator) wait(timeout time.Duration) (events int, err error) {
	slept := timeout > 0
	if timeout > 0 && timeout < sleepMax {
		timespec := unix.NsecToTimespec(timeout.Nanoseconds())
		if _, err := unix.Ppoll([]unix.PollFd{{Fd: int32(g.epollFD), Events: unix.POLLIN}}, &timespec, nil); err != nil {
			return 0, err
		}
		timeout = 0
	}
	events, err = unix.EpollWait(g.epollFD, g.events, int(timeout/time.Millisecond))
	if slept {
		g.lastNow = time.Since(g.startTime) // sleep does not count as a stall
	}
	return events, err
}

// sleepTime returns how long poll may sleep. With a Rate it returns 0 if any response is outstanding, because waking
// up takes longer than many responses do. Groups with DropLate do not prevent sleep, because they run beside another
// load, which needs the core.
func (g *Generator) sleepTime(now, end time.Duration) time.Duration {
	limit := min(end-now, sleepMax)
	for _, group := range g.Groups {
		if group.Rate == 0 || g.scheduleStart == 0 {
			continue
		}
		if g.inFlight > 0 && !group.DropLate {
			return 0
		}
		if due := g.dueAt(group); due < g.measureEnd {
			limit = min(limit, due-now-spinTime)
		}
	}
	return max(0, limit)
}

// drained reports whether all requests of the measured time have been sent and have a response.
func (g *Generator) drained() bool {
	for _, group := range g.Groups {
		if group.Rate > 0 && g.dueAt(group) < g.measureEnd {
			return false
		}
	}
	return g.countedInFlight == 0
}

// countUnanswered counts requests without a response as lost, and with a Rate also due requests that were never sent.
// With a Rate the elapsed time ends with the last response: a shorter time would make a slow target look fast.
func (g *Generator) countUnanswered(sendEnd time.Duration) {
	for i := range g.conns {
		if c := &g.conns[i]; c.counted {
			c.Lost += c.Pipeline
		}
	}
	for _, group := range g.Groups {
		group.Elapsed = sendEnd - g.measureStart
		if group.Rate == 0 {
			continue
		}
		group.Elapsed = max(g.measureEnd, group.lastResponse) - g.measureStart
		for ; g.dueAt(group) < g.measureEnd; group.nextNumber++ {
			if g.dueAt(group) >= g.measureStart {
				group.Intended++
				group.Lost++
			}
		}
	}
}

func threadTime() time.Duration {
	var usage unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_THREAD, &usage) // cannot fail
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
