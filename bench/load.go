//go:build linux

package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/valyala/fasthttp"
	"golang.org/x/sys/unix"
)

const (
	sleepMax = 20 * time.Millisecond // longest sleep between two checks of the context
	// spinTime is how long before a request is due the generator stops sleeping and polls. On a virtual machine a sleep
	// ends 15 to 40 µs late, sometimes 100 µs, which would count as latency of the server.
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

// results counts the requests that were due or sent in the measured time. Their responses may arrive later.
type results struct {
	Intended  int // all counted requests, including those that were never sent
	Responses int
	Lost      int                     // requests without a response; with a Rate also requests that were never sent
	Statuses  map[int]int             // number of responses by HTTP status
	Elapsed   time.Duration           // measured time; with a Rate it ends with the last response
	Latency   *hdrhistogram.Histogram // latencies of responses with status 200, in nanoseconds
	CPU       time.Duration           // of this process; near Elapsed, the generator limits the load

	lastResponse time.Duration
}

// generator puts one load on one address. It counts every request: it has a response, or was lost. Each client has one
// connection and one goroutine. While the generator measures it allocates nothing, so that its garbage collector does
// not distort latencies.
//
// A sleep of the Go runtime would end up to a millisecond late, so the generator calls the kernel to sleep, and only if
// no response is outstanding.
type generator struct {
	Address     string      // host:port
	TLS         *tls.Config // nil without TLS
	Requests    *mix
	Connections int // number of clients
	// Rate is the number of requests per second of all clients (open loop). Each request has a due time, from which
	// its latency is measured. A stall of the server therefore adds to the latency of every request that becomes due
	// during the stall. With rate 0 each client sends a request as soon as it has the response to its previous request
	// (closed loop).
	Rate       float64
	Reconnects bool // open a new connection for each request
	Pipeline   int  // requests sent together; 0 means 1
	// Subnet and PerAddress set the source addresses of the connections: PerAddress clients share each address of
	// 127.Subnet.0.0/16. With Subnet 0 the kernel chooses the address.
	Subnet     byte
	PerAddress int
	Warmup     time.Duration // time of the load before the measured time
	Measure    time.Duration // measured time
	Drain      time.Duration // longest wait for responses after the measured time; 0 means 10 s
	// OnMeasure is called just before the measured time and after the last response, for example to read the server's
	// CPU time. Its duration delays no request. It may be nil.
	OnMeasure func() error

	results // set by run

	startTime time.Time // all other times are durations since startTime
	random    *rand.Rand
	fail      context.CancelCauseFunc // ends the load

	mu                       sync.Mutex    // protects the fields below, results and Requests
	due                      *sync.Cond    // signalled when a request becomes due, and at the end
	idle                     chan struct{} // gets a value when no response is outstanding
	number, released         int           // open loop: requests that clients have taken, and that have become due
	scheduleStart            time.Duration // time from which due times are counted
	measureStart, measureEnd time.Duration
	inFlight                 int  // requests that wait for a response
	losses                   int  // consecutive ones without a response
	answered                 int  // responses, counted or not
	over                     bool // clients must end
}

// run generates the load and sets the results. It must be called only once.
func (g *generator) run(ctx context.Context) error {
	g.startTime, g.due = time.Now(), sync.NewCond(&g.mu)
	g.random = rand.New(rand.NewPCG(uint64(g.startTime.UnixNano()), 0))
	g.idle = make(chan struct{}, 1)
	g.results = results{Statuses: map[int]int{}, Latency: hdrhistogram.New(1, int64(latencyLimit), 3)}
	g.Pipeline, g.measureStart, g.measureEnd = max(1, g.Pipeline), math.MaxInt64, math.MaxInt64
	if g.Drain == 0 {
		g.Drain = drainMax
	}
	if g.OnMeasure == nil {
		g.OnMeasure = func() error { return nil }
	}
	ctx, g.fail = context.WithCancelCause(ctx)
	defer g.fail(nil)
	if err := g.drive(ctx); err != nil {
		return fmt.Errorf("load on %s: %w", g.Address, err)
	}
	return nil
}

func (g *generator) now() time.Duration { return time.Since(g.startTime) }

// drive opens the connections, generates the load and waits for the last responses.
func (g *generator) drive(ctx context.Context) error {
	clients, err := g.connect(ctx)
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	ended := make(chan struct{})
	begin := func(at time.Duration) {
		g.scheduleStart = at
		for _, c := range clients {
			running.Go(c.work)
		}
		go func() {
			running.Wait()
			close(ended)
		}()
	}
	defer func() { // a client that waits for a response sees the end of its connection
		g.end(clients)
		running.Wait()
	}()
	if g.Warmup > 0 {
		begin(g.now())
		if err := g.until(ctx, g.scheduleStart+g.Warmup); err != nil {
			return err
		}
	}
	if err := g.startMeasuring(); err != nil {
		return err
	}
	cpuBefore := processTime()
	if g.Warmup == 0 {
		begin(g.measureStart)
	}
	if err := g.until(ctx, g.measureEnd); err != nil {
		return err
	}
	g.CPU = processTime() - cpuBefore
	sendEnd, drained := g.now(), time.NewTimer(g.Drain)
	defer drained.Stop()
	g.mu.Lock()
	g.due.Broadcast()
	g.mu.Unlock()
	select {
	case <-ended:
	case <-drained.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	g.end(clients)
	running.Wait()
	g.countUnsent(sendEnd)
	if err := g.OnMeasure(); err != nil || g.answered > 0 {
		return err
	}
	return errNoResponse
}

// connect opens the connections, unless each request opens its own.
func (g *generator) connect(ctx context.Context) (clients []*client, err error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	var opening sync.WaitGroup
	errs := make([]error, g.Connections)
	for i := range g.Connections {
		c := newClient(g, i)
		clients = append(clients, c)
		if !g.Reconnects {
			opening.Go(func() { errs[i] = c.dial(ctx) })
		}
	}
	opening.Wait()
	for _, err := range errs {
		if err != nil {
			g.end(clients)
			return nil, fmt.Errorf("%w: a connection was not established: %w", errTargetGone, err)
		}
	}
	return clients, nil
}

// startMeasuring starts the measured time. Clients wait meanwhile, and the time that it takes delays all due times.
func (g *generator) startMeasuring() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	pausedAt := g.now()
	err := g.OnMeasure()
	g.measureStart = g.now()
	g.measureEnd = g.measureStart + g.Measure
	g.scheduleStart += g.measureStart - pausedAt
	return err
}

// until waits until a time. With a Rate it releases requests when they are due.
func (g *generator) until(ctx context.Context, end time.Duration) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for now := g.now(); now < end; now = g.now() {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		next, idle := min(end, now+sleepMax), false
		if g.Rate > 0 {
			var due time.Duration
			due, idle = g.release(now)
			next = min(next, due)
		}
		switch pause := next - now - spinTime; {
		case !idle:
			timer.Reset(next - now)
			select {
			case <-timer.C:
			case <-g.idle:
			}
		case pause > 0:
			timespec := unix.NsecToTimespec(pause.Nanoseconds())
			_ = unix.Nanosleep(&timespec, nil) // a signal ends it earlier
		}
	}
	return nil
}

// release lets clients send the requests that are due. It returns when the next one is due, and whether no response is
// outstanding.
func (g *generator) release(now time.Duration) (next time.Duration, idle bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for next = g.dueAt(g.released); next <= now && next < g.measureEnd; next = g.dueAt(g.released) {
		g.released++
		g.due.Signal()
	}
	return next, g.inFlight == 0 && g.number == g.released
}

// dueAt returns when a request is due.
func (g *generator) dueAt(number int) time.Duration {
	return g.scheduleStart + time.Duration(float64(number)/g.Rate*float64(time.Second))
}

// next writes the next request of a client. With a Rate it waits until one is due. It returns the time from which the
// latency is measured, and false at the end of the load.
func (g *generator) next(c *client) (due time.Duration, more bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	due = g.now()
	for g.Rate > 0 && g.number >= g.released && !g.over && g.now() < g.measureEnd {
		g.due.Wait()
	}
	if g.Rate > 0 {
		due = g.dueAt(g.number)
	}
	if g.over || due >= g.measureEnd {
		return due, false
	}
	g.number++
	g.inFlight++
	if c.counted = due >= g.measureStart; c.counted {
		g.Intended += g.Pipeline
	}
	c.request = c.request[:0]
	for range g.Pipeline {
		c.request = g.Requests.Next(c.request, g.random)
	}
	return due, true
}

// count counts the responses of a client to one write, or a lost request.
func (g *generator) count(c *client, due time.Duration, status int, err error) {
	now := g.now()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inFlight--; g.inFlight == 0 && g.number == g.released {
		select {
		case g.idle <- struct{}{}:
		default:
		}
	}
	if err != nil {
		if c.counted {
			g.Lost += g.Pipeline
		}
		g.losses++
		if limit := 100 + 2*g.Connections; g.losses > limit && !g.over {
			g.fail(fmt.Errorf("%w: %d connections in a row ended without a response (after %d responses), the last because of: %w",
				errTargetGone, g.losses, g.answered, err))
		}
		return
	}
	g.losses = 0
	g.answered++
	if !c.counted {
		return
	}
	g.Responses += g.Pipeline
	g.lastResponse = now
	if g.Statuses[status] += g.Pipeline; status == 200 {
		_ = g.Latency.RecordValue(int64(min(max(now-due, 1), latencyLimit))) // cannot fail: at most latencyLimit
	}
}

// end makes all clients end.
func (g *generator) end(clients []*client) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.over = true
	g.due.Broadcast()
	for _, c := range clients {
		if c.conn != nil {
			_ = c.conn.Close() // an error is irrelevant: the connection is not used any more
		}
	}
}

// countUnsent counts due requests that were never sent as lost. With a Rate the elapsed time ends with the last
// response: a shorter time would make a slow target look fast.
func (g *generator) countUnsent(sendEnd time.Duration) {
	g.Elapsed = sendEnd - g.measureStart
	if g.Rate == 0 {
		return
	}
	g.Elapsed = max(g.measureEnd, g.lastResponse) - g.measureStart
	for ; g.dueAt(g.number) < g.measureEnd; g.number++ {
		if g.dueAt(g.number) >= g.measureStart {
			g.Intended++
			g.Lost++
		}
	}
}

func processTime() time.Duration {
	var usage unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &usage) // cannot fail
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// readBufferBytes is the size of the read buffer of a connection, and the largest size of the head of a response.
const readBufferBytes = 16 << 10

// Causes of a lost connection.
var (
	errClosed = errors.New("the load has ended")
	errExcess = errors.New("more than one response to one request")
)

// client is one client of a generator. It has one connection at a time.
type client struct {
	generator *generator
	dialer    net.Dialer
	conn      net.Conn // nil without a connection; the client changes it, with generator.mu
	reader    *bufio.Reader
	request   []byte
	response  fasthttp.Response
	counted   bool // the outstanding request is counted in results
}

func newClient(g *generator, number int) *client {
	c := &client{generator: g, dialer: net.Dialer{Timeout: connectTimeout, KeepAlive: -1}, reader: bufio.NewReaderSize(nil, readBufferBytes)}
	if g.Subnet != 0 {
		address := number / g.PerAddress
		c.dialer.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, g.Subnet, byte(address/250), byte(1+address%250))} //nolint:gosec // G115: below 250
		c.dialer.Control = func(_, _ string, socket syscall.RawConn) error {                                   // otherwise bind would reserve a port
			return socket.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1) })
		}
	}
	return c
}

// work sends requests until the load ends.
func (c *client) work() {
	for {
		due, more := c.generator.next(c)
		if !more {
			return
		}
		status, closes, err := c.exchange()
		c.generator.count(c, due, status, err)
		if closes || c.generator.Reconnects {
			c.hangUp()
		}
	}
}

// dial opens the connection.
func (c *client) dial(ctx context.Context) error {
	g := c.generator
	conn, err := c.dialer.DialContext(ctx, "tcp", g.Address)
	if err == nil && g.TLS != nil {
		encrypted := tls.Client(conn, g.TLS)
		if err = encrypted.HandshakeContext(ctx); err != nil {
			_ = conn.Close() // it is not used
		}
		conn = encrypted
	}
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over {
		_ = conn.Close() // it is not used
		return errClosed
	}
	c.reader.Reset(conn)
	c.conn = conn
	return nil
}

// hangUp closes the connection, if there is one.
func (c *client) hangUp() {
	c.generator.mu.Lock()
	defer c.generator.mu.Unlock()
	if c.conn != nil {
		_ = c.conn.Close() // an error is irrelevant: the connection is not used any more
		c.conn = nil
	}
}

// exchange sends the request, on a new connection if there is none, and reads the response, or all pipelined ones. The
// status is 200 if all responses have status 200, otherwise the first other status.
func (c *client) exchange() (status int, closes bool, err error) {
	if c.conn == nil {
		if err := c.dial(context.Background()); err != nil { // the dialer has a time limit
			return 0, true, err
		}
	}
	if _, err := c.conn.Write(c.request); err != nil {
		return 0, true, err
	}
	for range c.generator.Pipeline {
		if err := c.response.Read(c.reader); err != nil {
			return 0, true, err
		}
		if status == 0 || status == http.StatusOK {
			status = c.response.StatusCode()
		}
		closes = closes || c.response.ConnectionClose()
	}
	if c.reader.Buffered() > 0 {
		return 0, true, errExcess
	}
	return status, closes, nil
}
