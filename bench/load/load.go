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

// RequestSource generates the requests of clients.
type RequestSource interface {
	// Next appends an HTTP request to dst.
	Next(dst []byte, random *rand.Rand) []byte
}

// Results counts the requests that were due or sent in the measured time. Their responses may arrive later.
type Results struct {
	Intended  uint64 // all counted requests, including those that were never sent
	Sent      uint64
	Responses uint64
	Lost      uint64                  // requests without a response; with a Rate also requests that were never sent
	Bytes     uint64                  // size of all responses
	Statuses  map[int]uint64          // number of responses by HTTP status
	Elapsed   time.Duration           // measured time; with a Rate it ends with the last response
	Latency   *hdrhistogram.Histogram // latencies of responses with status 200, in nanoseconds
	// CPU is the CPU time of the generator's thread in the measured time. If it is close to Elapsed, the generator
	// limits the load.
	CPU time.Duration

	lastResponse time.Duration
}

// Generator generates one load on one address. Each client has one connection. It runs in one goroutine that is locked
// to a thread and has its own epoll instance. Go's network poller would wake the goroutine up to a millisecond late,
// and the delay would count as latency of the server.
type Generator struct {
	Address     string      // host:port
	TLS         *tls.Config // nil without TLS
	Requests    RequestSource
	Connections int // number of clients
	// Rate is the number of requests per second of all clients (open loop). Each request has a due time, from which
	// its latency is measured. A stall of the server therefore adds to the latency of every request that becomes due
	// during the stall. With rate 0 each client sends a request as soon as it has the response to its previous request
	// (closed loop).
	Rate       float64
	Reconnects bool   // open a new connection for each request
	Pipeline   uint64 // requests sent together; 0 means 1
	// Subnet and PerAddress set the source addresses of the connections: PerAddress clients share each address of
	// 127.Subnet.0.0/16. With Subnet 0 the kernel chooses the address.
	Subnet     byte
	PerAddress int
	Seed       uint64        // seed of the random numbers that RequestSource.Next gets
	Warmup     time.Duration // time of the load before the measured time
	Measure    time.Duration // measured time
	Drain      time.Duration // longest wait for responses after the measured time; 0 means 10 s
	// Run calls OnMeasureStart just before the measured time, and OnMeasureEnd after the last response. They can read
	// the server's CPU time: the time that they take delays no request. Both may be nil.
	OnMeasureStart, OnMeasureEnd func() error

	Results // set by Run

	idle       chan *connection // open loop: connections that can send the next due request
	nextNumber uint64           // number of the next request to become due, from 0

	target                    unix.Sockaddr
	family                    int
	epollFD                   int
	events                    []unix.EpollEvent
	conns                     []connection
	random                    *rand.Rand
	buffer                    []byte
	startTime                 time.Time     // all other times are durations since startTime
	scheduleStart             time.Duration // time from which due times are counted; 0 until connections are open
	measureStart, measureEnd  time.Duration
	inFlight, countedInFlight int // connections that wait for a response; those of them whose request Results counts
	dialling                  int // connections being opened
	consecutiveLosses         int // connections lost since the last response
	responses                 uint64
}

// Run generates the load and sets Results. It must be called only once.
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
	g.Results = Results{Statuses: map[int]uint64{}, Latency: hdrhistogram.New(1, int64(latencyLimit), 3)}
	g.Pipeline, g.idle = max(1, g.Pipeline), make(chan *connection, g.Connections)
	for i := range g.Connections {
		c := connection{number: i, socket: -1}
		if g.Subnet != 0 {
			address := i / g.PerAddress
			_, c.source = socketAddress(netip.AddrFrom4([4]byte{127, g.Subnet, byte(address / 250), byte(1 + address%250)}), 0)
		}
		g.conns = append(g.conns, c)
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

func (g *Generator) now() time.Duration { return time.Since(g.startTime) }

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
	sendEnd := g.now()
	if err := g.poll(ctx, sendEnd+g.Drain, g.drained); err != nil {
		return err
	}
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

// connect opens all connections, unless each request opens its own.
func (g *Generator) connect(ctx context.Context) error {
	for i := range g.conns {
		if g.Reconnects {
			break
		}
		if err := g.dial(&g.conns[i]); err != nil {
			return err
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
	g.measureEnd = g.measureStart + g.Measure
	g.scheduleStart += g.measureStart - pausedAt
	return nil
}

// start makes each client send its first request, or wait until a request is due (nextRequest).
func (g *Generator) start() error {
	for i := range g.conns {
		if c := &g.conns[i]; c.state == connIdle || g.Reconnects {
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
	if timeout > 0 && timeout < sleepMax {
		timespec := unix.NsecToTimespec(timeout.Nanoseconds())
		if _, err := unix.Ppoll([]unix.PollFd{{Fd: int32(g.epollFD), Events: unix.POLLIN}}, &timespec, nil); err != nil {
			return 0, err
		}
		timeout = 0
	}
	return unix.EpollWait(g.epollFD, g.events, int(timeout/time.Millisecond))
}

// sleepTime returns how long poll may sleep. With a Rate it returns 0 if any response is outstanding, because waking
// up takes longer than many responses do.
func (g *Generator) sleepTime(now, end time.Duration) time.Duration {
	limit := min(end-now, sleepMax)
	if g.Rate > 0 && g.scheduleStart > 0 {
		if g.inFlight > 0 {
			return 0
		}
		if due := g.dueAt(); due < g.measureEnd {
			limit = min(limit, due-now-spinTime)
		}
	}
	return max(0, limit)
}

// drained reports whether all requests of the measured time have been sent and have a response.
func (g *Generator) drained() bool {
	return g.countedInFlight == 0 && (g.Rate == 0 || g.dueAt() >= g.measureEnd)
}

// countUnanswered counts requests without a response as lost, and with a Rate also due requests that were never sent.
// With a Rate the elapsed time ends with the last response: a shorter time would make a slow target look fast.
func (g *Generator) countUnanswered(sendEnd time.Duration) {
	for i := range g.conns {
		if g.conns[i].counted {
			g.Lost += g.Pipeline
		}
	}
	g.Elapsed = sendEnd - g.measureStart
	if g.Rate == 0 {
		return
	}
	g.Elapsed = max(g.measureEnd, g.lastResponse) - g.measureStart
	for ; g.dueAt() < g.measureEnd; g.nextNumber++ {
		if g.dueAt() >= g.measureStart {
			g.Intended++
			g.Lost++
		}
	}
}

func threadTime() time.Duration {
	var usage unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_THREAD, &usage) // cannot fail
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
