package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"pgregory.net/rapid"
)

// short is a load for tests; the patience of its drive is a second.
func short(address string, connections int, rate float64) *load {
	return &load{
		address: address, asker: simplest(), seed: 1, connections: connections, rate: rate,
		warmup: 20 * time.Millisecond, measure: 200 * time.Millisecond,
	}
}

// mustDrive runs a load that comes to its end.
func mustDrive(t testing.TB, l *load) *tally {
	t.Helper()
	found, err := l.drive(t.Context(), time.Second)
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	return found
}

// calmly tries a few times what a stall of the machine could feign; the last error counts. What no stall can feign is checked
// outside, each time.
func calmly(t *testing.T, try func() error) {
	t.Helper()
	var err error
	for range 4 {
		if err = try(); err == nil {
			return
		}
		t.Logf("again: %v", err)
	}
	t.Error(err)
}

func TestLoad_Closed(t *testing.T) {
	body := strings.Repeat("r", 2048)
	address := serveFast(t, func(ctx *fasthttp.RequestCtx) { ctx.SetBodyString(body) })
	l := short(address, 8, 0)
	found, err := l.run(t.Context())
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	if found.answers < 10 || found.lost != 0 || found.statuses[200] != found.answers || len(found.statuses) != 1 {
		t.Errorf("%d answers %v, %d lost; want some, all 200, none lost", found.answers, found.statuses, found.lost)
	}
	if found.bytes < found.answers*2048 || found.bytes > found.answers*2400 {
		t.Errorf("%d bytes for %d answers of 2048 and a head", found.bytes, found.answers)
	}
	if got := found.latency.TotalCount(); got != int64(found.answers) {
		t.Errorf("%d latencies for %d answers", got, found.answers)
	}
	if found.elapsed < l.measure {
		t.Errorf("measured for %v, want at least %v", found.elapsed, l.measure)
	}
	if found.generator <= 0 || found.generator > found.elapsed+time.Second {
		t.Errorf("the generator used %v in %v", found.generator, found.elapsed)
	}
}

// At a rate there are as many answers as there are moments.
func TestLoad_Open(t *testing.T) {
	address := serveFast(t, func(ctx *fasthttp.RequestCtx) { ctx.SetStatusCode(204) })
	for _, rate := range []float64{50, 3000} {
		found := mustDrive(t, short(address, 8, rate))
		want := uint64(rate / 5)
		if found.answers < want-1 || found.answers > want+1 || found.lost != 0 || found.statuses[204] != found.answers {
			t.Errorf("at %v/s for 200 ms: %d answers %v, %d lost; want %d, none lost", rate, found.answers, found.statuses, found.lost, want)
		}
	}
}

func TestLoad_Statuses(t *testing.T) {
	var count atomic.Uint64
	address := serveFast(t, func(ctx *fasthttp.RequestCtx) {
		switch count.Add(1) % 4 {
		case 0:
			ctx.SetStatusCode(304)
		case 1:
			ctx.SetStatusCode(429)
			ctx.SetBodyString("{}")
		default:
			ctx.SetBodyString("fine")
		}
	})
	found := mustDrive(t, short(address, 3, 0))
	if found.statuses[200]+found.statuses[304]+found.statuses[429] != found.answers || len(found.statuses) != 3 {
		t.Errorf("%v of %d answers, want 200, 304 and 429", found.statuses, found.answers)
	}
	near(t, "200", int(found.statuses[200]), int(found.answers/2))
	near(t, "304", int(found.statuses[304]), int(found.answers/4))
}

// A stall of the whole server: everybody who asks meanwhile waits for its end.
type stall struct {
	mu    sync.Mutex
	count int
	at    int // the request that stalls it
	lasts time.Duration
}

const stallLasts = 200 * time.Millisecond

func (s *stall) handle(ctx *fasthttp.RequestCtx) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count++; s.count == s.at {
		over := time.NewTimer(s.lasts)
		<-over.C
	}
	ctx.SetBodyString("fine")
}

// The promise of a rate: a server that stops for 200 ms is charged for everything that would have come meanwhile, each request for
// what was left of the stall at its moment. The control is the same stall without a rate: it costs one answer, and nothing would
// be seen of it in a 99th percentile.
func TestLoad_NoCoordinatedOmission(t *testing.T) {
	calmly(t, func() error {
		l := short(serveFast(t, (&stall{at: 100, lasts: stallLasts}).handle), 1, 0)
		l.warmup, l.measure = 0, 500*time.Millisecond
		found := mustDrive(t, l)
		if slow := slower(found, 150*time.Millisecond); slow != 1 {
			return fmt.Errorf("closed: %d answers took more than 150 ms, want 1", slow)
		}
		return nil
	})
	calmly(t, func() error {
		const rate = 1000
		l := short(serveFast(t, (&stall{at: 100, lasts: stallLasts}).handle), 8, rate)
		l.warmup, l.measure = 0, time.Second
		found := mustDrive(t, l)
		if found.answers != rate || found.lost != 0 {
			return fmt.Errorf("open: %d answers, %d lost; want %d and none", found.answers, found.lost, rate)
		}
		var slow []int64
		for i, beyond := range []time.Duration{10, 50, 100, 150} {
			beyond *= time.Millisecond
			slow = append(slow, slower(found, beyond))
			// Those whose moment came with at least so much of the stall left.
			if want := int64((stallLasts - beyond).Seconds() * rate); slow[i] < want-2 {
				t.Errorf("open: %d answers took more than %v, want at least %d", slow[i], beyond, want)
			}
		}
		if slow[3] > slow[0]*3/4 {
			return fmt.Errorf("open: %d answers took more than 10 ms, and of those %d more than 150: they don't fall", slow[0], slow[3])
		}
		return nil
	})
}

// slower counts the answers that took longer.
func slower(found *tally, than time.Duration) int64 {
	count := int64(0)
	for _, bar := range found.latency.Distribution() {
		if bar.From >= int64(than) {
			count += bar.Count
		}
	}
	return count
}

// What was sent before the measured time is not counted, though it is answered within it.
func TestLoad_WarmupIsNotCounted(t *testing.T) {
	for _, rate := range []float64{0, 1000} {
		calmly(t, func() error {
			all, found := heldInWarmup(t, rate)
			least, most := uint64(4), uint64(4) // as many as there are connections, since no answer came before
			if rate > 0 {
				least, most = 19, 25 // and those that waited for a connection
			}
			if early := all - found.answers; early < least || early > most {
				return fmt.Errorf("rate %v: %d requests, %d not counted; want %d to %d", rate, all, early, least, most)
			}
			return nil
		})
	}
}

// heldInWarmup runs a load on a server that answers nothing until the measured time begins, and returns how many requests came.
func heldInWarmup(t *testing.T, rate float64) (uint64, *tally) {
	t.Helper()
	var arrived atomic.Uint64
	gate := make(chan struct{})
	address := serveFast(t, func(ctx *fasthttp.RequestCtx) {
		arrived.Add(1)
		<-gate
		ctx.SetBodyString("fine")
	})
	l := short(address, 4, rate)
	l.begins = func() error {
		close(gate)
		return nil
	}
	found := mustDrive(t, l)
	return arrived.Load(), found
}

// Reading counters at the beginning takes its time; no request is charged for it, and none is left out.
func TestLoad_BeginningIsNotCharged(t *testing.T) {
	var arrived atomic.Uint64
	address := serveFast(t, func(ctx *fasthttp.RequestCtx) {
		arrived.Add(1)
		ctx.SetBodyString("fine")
	})
	calmly(t, func() error {
		l := short(address, 4, 500)
		l.begins = func() error {
			<-time.NewTimer(300 * time.Millisecond).C
			return nil
		}
		arrived.Store(0)
		found := mustDrive(t, l)
		if found.answers < 99 || found.answers > 101 {
			t.Errorf("%d answers, want 100", found.answers)
		}
		if early := arrived.Load() - found.answers; early > 50 {
			return fmt.Errorf("%d requests are not counted, want about 10: the moments went on while counters were read", early)
		}
		if slow := slower(found, 250*time.Millisecond); slow > 0 {
			return fmt.Errorf("%d answers are charged for the reading of counters", slow)
		}
		return nil
	})
}

// The moments begin with the load, not with its first connection.
func TestLoad_NothingIsSentWhileConnecting(t *testing.T) {
	d, err := newDriver(t.Context(), short(serveRaw(t, silent).address(), 2, 1000), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	if err := errors.Join(d.connect(t.Context()), d.sendDue(d.now())); err != nil || d.everSent > 0 {
		t.Errorf("%d requests sent before the load begins, error %v", d.everSent, err)
	}
}

// A rate above what the target can do: everything that was due is waited for, within the patience, and the time goes on.
func TestLoad_Overload(t *testing.T) {
	const each = 2 * time.Millisecond
	address := serveFast(t, func(ctx *fasthttp.RequestCtx) {
		<-time.NewTimer(each).C
		ctx.SetBodyString("fine")
	})
	l := short(address, 1, 2000) // 400 requests, and at most 100 answers in that time
	l.warmup = 0
	found := mustDrive(t, l)
	if found.answers+found.lost != 400 {
		t.Errorf("%d answers and %d lost, want 400 together", found.answers, found.lost)
	}
	if found.elapsed < time.Duration(found.answers)*each {
		t.Errorf("%d answers of %v in %v: the time ended too early", found.answers, each, found.elapsed)
	}
	if got := time.Duration(found.latency.Max()); got < 400*time.Millisecond {
		t.Errorf("the longest wait is %v, want that of the queue", got)
	}
}

// What is never answered is lost, and the run ends all the same.
func TestLoad_Patience(t *testing.T) {
	var count atomic.Uint64
	server := serveRaw(t, func(conn *net.TCPConn) {
		if count.Add(1)%2 == 0 {
			silent(conn)
			return
		}
		answering(plainReply)(conn)
	})
	for _, rate := range []float64{0, 1000} {
		l := short(server.address(), 4, rate)
		l.warmup = 0
		found, err := l.drive(t.Context(), 300*time.Millisecond)
		if err != nil {
			t.Fatalf("rate %v: %v", rate, err)
		}
		if found.lost != 2 || found.answers == 0 {
			t.Errorf("rate %v: %d lost of %d, want the 2 that are never answered", rate, found.lost, found.answers)
		}
	}
}

func TestLoad_ClosedConnectionsAreOpenedAnew(t *testing.T) {
	var connections atomic.Uint64
	server := serveRaw(t, func(conn *net.TCPConn) {
		connections.Add(1)
		answering("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")(conn)
	})
	for _, rate := range []float64{0, 500} {
		before := connections.Load()
		found := mustDrive(t, short(server.address(), 2, rate))
		if found.lost != 0 || found.answers < 10 || connections.Load()-before < found.answers {
			t.Errorf("rate %v: %d answers, %d lost on %d connections; want one for each, none lost", rate, found.answers, found.lost,
				connections.Load()-before)
		}
	}
}

// A target that tires of idle connections, and even says so, loses no request by it, but for one that crosses its farewell.
func TestLoad_IdleConnections(t *testing.T) {
	server := serveRaw(t, func(conn *net.TCPConn) {
		buffer := make([]byte, 1024)
		for conn.SetReadDeadline(time.Now().Add(4*time.Millisecond)) == nil && readRequest(conn, buffer) && answerPlainly(conn) {
		}
		_, _ = conn.Write([]byte("HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"))
	})
	l := short(server.address(), 4, 200)
	found := mustDrive(t, l)
	if all := found.answers + found.lost; all < 39 || all > 41 || found.statuses[200] < 10 || found.latency.TotalCount() != int64(found.answers) {
		t.Errorf("%d answers %v, %d lost; want 40, most of them 200", found.answers, found.statuses, found.lost)
	}
}

// A line stands once in the ring, and comes out of it only while it is free.
func TestRing_Table(t *testing.T) {
	lines := []line{{number: 0, phase: lineFree}, {number: 1, phase: lineFree}, {number: 2, phase: lineFree}}
	r := ring{numbers: make([]int, len(lines))}
	for range 3 {
		for i := range lines {
			r.push(&lines[i])
		}
	}
	lines[1].phase = lineDials
	for _, want := range []int{0, 2} {
		if c := r.pop(lines); c == nil || c.number != want {
			t.Fatalf("popped %v, want line %d", c, want)
		}
	}
	if c := r.pop(lines); c != nil {
		t.Fatalf("popped %v of an empty ring", c)
	}
	lines[1].phase = lineFree
	r.push(&lines[1])
	if c := r.pop(lines); c != &lines[1] {
		t.Fatalf("popped %v, want line 1, which is free again", c)
	}
}

// Requests and answers that no socket takes at once.
func TestLoad_LargePieces(t *testing.T) {
	const bytes = 6 << 20
	reply := "HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n" + strings.Repeat("b", 3_000_000)
	server := serveRaw(t, func(conn *net.TCPConn) {
		buffer := make([]byte, 1<<20)
		for read := 0; ; {
			n, err := conn.Read(buffer)
			if err != nil {
				return
			}
			if read += n; read == bytes {
				read = 0
				if _, err := conn.Write([]byte(reply)); err != nil {
					return
				}
			}
		}
	})
	l := short(server.address(), 2, 0)
	l.asker = &repeated{request: strings.Repeat("q", bytes)}
	found := mustDrive(t, l)
	if found.answers == 0 || found.lost != 0 || found.bytes != found.answers*uint64(len(reply)) {
		t.Errorf("%d answers, %d lost, %d bytes; want whole answers of %d", found.answers, found.lost, found.bytes, len(reply))
	}
}

// An answer to half a request is none: what follows on the connection would be read as the next request.
func TestLoad_AnswerTooSoon(t *testing.T) {
	server := serveRaw(t, func(conn *net.TCPConn) {
		buffer := make([]byte, 1024)
		if readRequest(conn, buffer) && answerPlainly(conn) {
			<-time.NewTimer(20 * time.Millisecond).C // then it hangs up
		}
	})
	l := short(server.address(), 1, 0)
	l.asker = &repeated{request: strings.Repeat("q", 16<<20)}
	_, err := l.drive(t.Context(), 100*time.Millisecond)
	if !errors.Is(err, errSilent) && !errors.Is(err, errGone) {
		t.Errorf("error %v, want none of these counted as an answer", err)
	}
}

func TestLoad_TargetIsGone(t *testing.T) {
	closedPort := listen(t)
	closedPort.Close()

	var count atomic.Uint64
	die, dead := make(chan struct{}), make(chan struct{})
	dying := serveRaw(t, func(conn *net.TCPConn) {
		buffer := make([]byte, 1024)
		for readRequest(conn, buffer) {
			if count.Add(1) == 50 {
				close(die)
				<-dead
				return
			}
			if !answerPlainly(conn) {
				return
			}
		}
	})
	go func() {
		<-die
		dying.stop()
		close(dead)
	}()
	hangingUp := serveRaw(t, func(conn *net.TCPConn) { readRequest(conn, make([]byte, 1024)) })
	tests := []struct {
		name, address string
		rate          float64
		want          error
		says          string
	}{
		{"never there", closedPort.Addr().String(), 0, errGone, "refused"},
		{"dies", dying.address(), 0, errGone, "refused"},
		{"hangs up on everybody", hangingUp.address(), 0, errGone, "one after the other"},
		{"hangs up at a rate", hangingUp.address(), 5000, errGone, "one after the other"},
		{"answers nothing", serveRaw(t, silent).address(), 0, errSilent, "2 requests"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := short(tt.address, 2, tt.rate).drive(t.Context(), 100*time.Millisecond)
			if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), tt.address) {
				t.Errorf("error %v, want %v with %q and the address", err, tt.want, tt.says)
			}
		})
	}
}

func TestLoad_Context(t *testing.T) {
	server := serveRaw(t, silent)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	l := short(server.address(), 2, 0)
	l.measure = time.Minute
	if _, err := l.run(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want that of the context", err)
	}
}

func TestLoad_HooksEndIt(t *testing.T) {
	address := serveFast(t, func(ctx *fasthttp.RequestCtx) { ctx.SetBodyString("fine") })
	planted := errors.New("planted")
	fail := func() error { return planted }
	early, late := short(address, 1, 0), short(address, 1, 0)
	early.begins, late.ends = fail, fail
	for _, l := range []*load{early, late} {
		if _, err := l.drive(t.Context(), time.Second); !errors.Is(err, planted) {
			t.Errorf("error %v, want that of the hook", err)
		}
	}
}

func TestLoad_Check(t *testing.T) {
	tests := map[string]func(*load){
		"nothing to ask":      func(l *load) { l.asker = nil },
		"no connection":       func(l *load) { l.connections = 0 },
		"connections":         func(l *load) { l.connections = 1_000_000 },
		"a negative rate":     func(l *load) { l.rate = -1 },
		"a rate that is none": func(l *load) { l.rate /= l.rate },
		"a negative warm-up":  func(l *load) { l.warmup = -1 },
		"no time":             func(l *load) { l.measure = 0 },
		"no port":             func(l *load) { l.address = "127.0.0.1" },
		"port 0":              func(l *load) { l.address = "127.0.0.1:0" },
		"a port with a name":  func(l *load) { l.address = "127.0.0.1:http" },
	}
	for name, spoil := range tests {
		l := short("127.0.0.1:1", 1, 0)
		spoil(l)
		if _, err := l.run(t.Context()); !errors.Is(err, errLoad) {
			t.Errorf("%s: error %v, want errLoad", name, err)
		}
	}
}

// Whatever the target does: what was sent is answered, lost, or in flight, and in the end one of the first two.
func TestLoad_NothingIsForgotten(t *testing.T) {
	behaviours := misbehaviours()
	rapid.Check(t, func(r *rapid.T) {
		seed := rapid.Uint64().Draw(r, "seed")
		share := rapid.IntRange(1, 50).Draw(r, "percent of misbehaviour")
		connections := rapid.IntRange(1, 8).Draw(r, "connections")
		rate := rapid.SampledFrom([]float64{0, 1000, 20_000}).Draw(r, "rate")
		var each atomic.Uint64
		server := serveRaw(t, func(conn *net.TCPConn) {
			random := rand.New(rand.NewPCG(seed, each.Add(1)))
			buffer := make([]byte, 1024)
			for readRequest(conn, buffer) {
				behave := answerPlainly
				if random.IntN(100) < share {
					behave = behaviours[random.IntN(len(behaviours))]
				}
				if !behave(conn) {
					return
				}
			}
		})
		defer server.end()
		l := short(server.address(), connections, rate)
		l.warmup = rapid.SampledFrom([]time.Duration{0, 5 * time.Millisecond}).Draw(r, "warm-up")
		if err := accounted(t, l); err != nil {
			r.Fatal(err)
		}
	})
}

func answerPlainly(conn *net.TCPConn) bool {
	_, err := conn.Write([]byte(plainReply))
	return err == nil
}

// accounted runs a load and holds its books against what was asked, and against what was to be asked.
func accounted(t *testing.T, l *load) error {
	asker := simplest()
	l.asker, l.measure = asker, 15*time.Millisecond
	d, err := newDriver(t.Context(), l, 10*time.Millisecond)
	if err != nil {
		return err
	}
	defer d.close()
	balance := func() error {
		if d.everSent != asker.asked || d.everSent != d.everAnswered+d.everLost+uint64(d.waiting) || d.waiting < d.owed {
			return fmt.Errorf("asked %d, sent %d, answered %d, lost %d, in flight %d (%d of them counted)",
				asker.asked, d.everSent, d.everAnswered, d.everLost, d.waiting, d.owed)
		}
		return nil
	}
	early := uint64(0)
	l.begins = func() error { early = asker.asked; return balance() }
	l.ends = balance
	found, err := d.run(t.Context())
	if err != nil {
		return ignore(err, errGone, errSilent)
	}
	if l.warmup == 0 && early > 0 {
		return fmt.Errorf("%d requests before the load began", early)
	}
	want := asker.asked - early
	if l.rate > 0 {
		want = uint64(l.rate * l.measure.Seconds())
	}
	if got := found.answers + found.lost; d.waiting != 0 || got+1 < want || got > want+1 || l.rate == 0 && got != want {
		return fmt.Errorf("%d answers and %d lost of %d, in flight %d", found.answers, found.lost, want, d.waiting)
	}
	if found.latency.TotalCount() != int64(found.answers) {
		return fmt.Errorf("%d latencies for %d answers", found.latency.TotalCount(), found.answers)
	}
	return nil
}

// In steady state the load allocates nothing, so that it neither collects garbage nor waits for somebody who does.
func TestLoad_AllocatesNothing(t *testing.T) {
	server := serveRaw(t, answering(plainReply))
	mallocs := func() uint64 {
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.Mallocs
	}
	for _, rate := range []float64{0, 10_000} {
		l := short(server.address(), 4, rate)
		l.asker = mustMix(t, []string{"k-1", "k-2"}, mixes("x")[mixConvert], 1)
		var before, after uint64
		l.begins = func() error { before = mallocs(); return nil }
		l.ends = func() error { after = mallocs(); return nil }
		found := mustDrive(t, l)
		if after-before > 100+found.answers/100 {
			t.Errorf("rate %v: %d allocations for %d answers, server and all", rate, after-before, found.answers)
		}
	}
}
