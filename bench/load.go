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
	"runtime"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"
)

const (
	sleepMax = 20 * time.Millisecond // longest sleep between two checks of the context
	// spinTime is how long before a request is due the generator stops sleeping and polls. On a virtual machine a sleep
	// ends 15 to 40 µs late, sometimes 100 µs. The delay would count as latency of the server.
	spinTime       = 100 * time.Microsecond
	connectTimeout = 10 * time.Second // for opening all connections before the load
	drainMax       = 10 * time.Second
	latencyLimit   = time.Minute // longer latencies are recorded as this one
)

// run returns these errors when the server does not respond. The results of the load are then meaningless.
var (
	errTargetGone = errors.New("the target is gone")
	errNoResponse = errors.New("no answer from the target")
)

// requestSource generates the requests of clients. Next appends an HTTP request to dst.
type requestSource interface {
	Next(dst []byte, random *rand.Rand) []byte
}

// results counts the requests that were due or sent in the measured time. Their responses may arrive later.
type results struct {
	Intended  uint64 // all counted requests, including those that were never sent
	Sent      uint64
	Responses uint64
	Lost      uint64                  // requests without a response; with a Rate also requests that were never sent
	Bytes     uint64                  // size of all responses
	Statuses  map[int]uint64          // number of responses by HTTP status
	Elapsed   time.Duration           // measured time; with a Rate it ends with the last response
	Latency   *hdrhistogram.Histogram // latencies of responses with status 200, in nanoseconds
	CPU       time.Duration           // of the generator's thread; near Elapsed, the generator limits the load

	lastResponse time.Duration
}

// generator puts one load on one address. It counts every request: it has a response, or was lost. Each client has one
// connection. The generator runs in one goroutine that is locked to a thread and has its own epoll instance. Go's
// network poller would wake the goroutine up to a millisecond late, and the delay would count as latency of the server.
// While it measures it allocates nothing, so that its garbage collector does not distort latencies.
type generator struct {
	Address     string      // host:port
	TLS         *tls.Config // nil without TLS
	Requests    requestSource
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
	Seed       uint64        // of the random numbers that Requests gets
	Warmup     time.Duration // time of the load before the measured time
	Measure    time.Duration // measured time
	Drain      time.Duration // longest wait for responses after the measured time; 0 means 10 s
	// OnMeasure is called just before the measured time and after the last response, for example to read the server's CPU
	// time: the time that it takes delays no request. It may be nil.
	OnMeasure func() error

	results // set by run

	idle                      chan *connection // open loop: connections that can send the next due request
	nextNumber                uint64           // number of the next request to become due, from 0
	target                    unix.Sockaddr
	family, epollFD           int
	events                    []unix.EpollEvent
	conns                     []connection
	random                    *rand.Rand
	buffer                    []byte
	startTime                 time.Time     // all other times are durations since startTime
	scheduleStart             time.Duration // time from which due times are counted; 0 until connections are open
	measureStart, measureEnd  time.Duration
	inFlight, countedInFlight int // connections that wait for a response; those of them whose request results counts
	dialling                  int // connections being opened
	consecutiveLosses         int // connections lost since the last response
	responses                 uint64
}

// run generates the load and sets the results. It must be called only once.
func (g *generator) run(ctx context.Context) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := g.prepare()
	if err == nil {
		defer g.close()
		err = g.drive(ctx)
	}
	if err != nil {
		return fmt.Errorf("load on %s: %w", g.Address, err)
	}
	return nil
}

// prepare resolves the address and allocates the connections.
func (g *generator) prepare() error {
	addr, err := net.ResolveTCPAddr("tcp", g.Address)
	if err != nil {
		return err
	}
	if g.epollFD, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return err
	}
	g.family, g.target = unix.AF_INET6, &unix.SockaddrInet6{Port: addr.Port, Addr: addr.AddrPort().Addr().As16()}
	if ip := addr.AddrPort().Addr().Unmap(); ip.Is4() {
		g.family, g.target = unix.AF_INET, &unix.SockaddrInet4{Port: addr.Port, Addr: ip.As4()}
	}
	g.random, g.buffer, g.startTime = rand.New(rand.NewPCG(g.Seed, 0)), make([]byte, 64<<10), time.Now()
	if g.Drain == 0 {
		g.Drain = drainMax
	}
	if g.OnMeasure == nil {
		g.OnMeasure = func() error { return nil }
	}
	g.results = results{Statuses: map[int]uint64{}, Latency: hdrhistogram.New(1, int64(latencyLimit), 3)}
	g.Pipeline, g.idle = max(1, g.Pipeline), make(chan *connection, g.Connections)
	for i := range g.Connections {
		c := connection{number: i, socket: -1}
		if g.Subnet != 0 {
			address := i / g.PerAddress
			c.source = &unix.SockaddrInet4{Addr: [4]byte{127, g.Subnet, byte(address / 250), byte(1 + address%250)}}
		}
		g.conns = append(g.conns, c)
	}
	g.events = make([]unix.EpollEvent, min(len(g.conns), 1024))
	return nil
}

func (g *generator) close() {
	for i := range g.conns {
		if g.conns[i].socket >= 0 {
			_ = unix.Close(g.conns[i].socket)
		}
	}
	_ = unix.Close(g.epollFD)
}

func (g *generator) now() time.Duration { return time.Since(g.startTime) }

// drive opens the connections, generates the load and waits for the last responses.
func (g *generator) drive(ctx context.Context) error {
	for i := 0; i < len(g.conns) && !g.Reconnects; i++ { // else each request opens its own
		if err := g.dial(&g.conns[i]); err != nil {
			return err
		}
	}
	if err := g.poll(ctx, g.now()+connectTimeout, func() bool { return g.dialling == 0 }); err != nil {
		return err
	}
	if g.dialling > 0 {
		return fmt.Errorf("%w: %d connections were not established within %v", errTargetGone, g.dialling, connectTimeout)
	}
	g.scheduleStart, g.measureStart, g.measureEnd = g.now(), math.MaxInt64, math.MaxInt64
	if g.Warmup > 0 {
		if err := errors.Join(g.start(), g.poll(ctx, g.scheduleStart+g.Warmup, nil)); err != nil {
			return err
		}
	}
	pausedAt := g.now()
	if err := g.OnMeasure(); err != nil {
		return err
	}
	g.measureStart = g.now()
	g.measureEnd = g.measureStart + g.Measure
	g.scheduleStart += g.measureStart - pausedAt // the time of the call delays all due times
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
	drained := func() bool { return g.countedInFlight == 0 && (g.Rate == 0 || g.dueAt() >= g.measureEnd) }
	if err := g.poll(ctx, sendEnd+g.Drain, drained); err != nil {
		return err
	}
	g.countUnanswered(sendEnd)
	if err := g.OnMeasure(); err != nil || g.responses > 0 {
		return err
	}
	return errNoResponse
}

// start makes each client send its first request, or wait until a request is due (nextRequest).
func (g *generator) start() error {
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
func (g *generator) poll(ctx context.Context, end time.Duration, done func() bool) error {
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
func (g *generator) wait(timeout time.Duration) (events int, err error) {
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
func (g *generator) sleepTime(now, end time.Duration) time.Duration {
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

// countUnanswered counts requests without a response as lost, and with a Rate also due requests that were never sent.
// With a Rate the elapsed time ends with the last response: a shorter time would make a slow target look fast.
func (g *generator) countUnanswered(sendEnd time.Duration) {
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
