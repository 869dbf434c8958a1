package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// short is a load for tests.
func short(address string, connections int, rate float64) *load {
	return &load{
		address: address, asker: simplest(), seed: 1, connections: connections, rate: rate,
		warmup: 20 * time.Millisecond, measure: 200 * time.Millisecond,
	}
}

// mustRun runs a load that comes to its end.
func mustRun(t testing.TB, l *load) *tally {
	t.Helper()
	found, err := l.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// driverOf is the load that a test can look into.
func driverOf(t *testing.T, l *load) *driver {
	t.Helper()
	d, err := newDriver(t.Context(), l, loadPatience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.close)
	return d
}

// Answers, statuses and bytes are counted; at a rate there are as many answers as there are moments. A connection that is to end with
// an answer is opened anew.
func TestLoad_Counts(t *testing.T) {
	replies := []string{plainReply, "HTTP/1.1 304 Not Modified\r\n\r\n", "HTTP/1.1 429 -\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"}
	var count, connections atomic.Uint64
	server := serve(t, func(conn net.Conn) {
		connections.Add(1)
		for buffer := make([]byte, 1024); readRequest(conn, buffer) && write(conn, replies[count.Add(1)%3]); {
		}
	})
	for _, rate := range []float64{0, 50, 3000} {
		before, l := connections.Load(), short(server.Addr().String(), 8, rate)
		found := mustRun(t, l)
		of := found.statuses
		if made := connections.Load() - before; made < of[429] {
			t.Errorf("rate %v: %d connections, of which %d were to be closed", rate, made, of[429])
		}
		if found.answers == 0 || found.lost != 0 || of[200]+of[304]+of[429] != found.answers || found.latency.TotalCount() != int64(found.answers) {
			t.Errorf("rate %v: %d answers %v, %d lost, %d latencies", rate, found.answers, of, found.lost, found.latency.TotalCount())
		}
		if want := of[200]*uint64(len(replies[0])) + of[304]*uint64(len(replies[1])) + of[429]*uint64(len(replies[2])); found.bytes != want {
			t.Errorf("rate %v: %d bytes, want %d", rate, found.bytes, want)
		}
		if want := uint64(rate * l.measure.Seconds()); rate > 0 && (found.answers+1 < want || found.answers > want+1) {
			t.Errorf("rate %v: %d answers, want %d", rate, found.answers, want)
		}
		if found.elapsed < l.measure || found.generator <= 0 || found.generator > found.elapsed+time.Second {
			t.Errorf("rate %v: the generator used %v in %v, of which %v are measured", rate, found.generator, found.elapsed, l.measure)
		}
	}
}

// timed is an asker that notes when it was asked for each request.
type timed struct {
	repeated
	at []time.Time
}

func (a *timed) next(dst []byte, random *rand.Rand) []byte {
	a.at = append(a.at, time.Now())
	return a.repeated.next(dst, random)
}

// At a rate a server that stops for a while is charged for everything that would have come meanwhile: each latency lies between the
// server's own time of answering, counted from the intended moment, and the time of the next request. Without a rate the same stop
// costs one answer: all latencies together are no longer than the run.
func TestLoad_NoCoordinatedOmission(t *testing.T) {
	const stops, lasts = 150, 100 * time.Millisecond
	for _, rate := range []float64{1000, 0} {
		answered := make(chan time.Time, 1_000_000)
		server := serve(t, func(conn net.Conn) {
			for n, buffer := 0, make([]byte, 1024); readRequest(conn, buffer); n++ {
				if n == stops {
					<-time.NewTimer(lasts).C
				}
				answered <- time.Now()
				if !write(conn, plainReply) {
					return
				}
			}
		})
		asker := &timed{repeated: *simplest()}
		l := short(server.Addr().String(), 1, rate)
		l.asker, l.warmup = asker, 0
		d := driverOf(t, l)
		found, err := d.run(t.Context())
		if err != nil || found.lost > 0 {
			t.Fatalf("%+v: %v", found, err)
		}
		ended := time.Now()
		charged := time.Duration(found.latency.Mean() * float64(found.answers))
		if rate == 0 {
			if took := ended.Sub(d.began); charged > took+took/100 {
				t.Errorf("without a rate %v are charged in %v", charged, took)
			}
			continue
		}
		var least, most, last time.Duration
		for i, sent := range append(asker.at[1:], ended) {
			last = (<-answered).Sub(d.began)
			least += last - d.moment(uint64(i))
			most += sent.Sub(d.began) - d.moment(uint64(i))
		}
		if charged < least-least/100 || charged > most+most/100 || least < 2*lasts {
			t.Errorf("%v are charged for %d answers, want %v to %v", charged, found.answers, least, most)
		}
		if found.elapsed < last-d.opens {
			t.Errorf("the last answer came after %v, and the time ended after %v", last-d.opens, found.elapsed)
		}
	}
}

// What was sent before the measured time is not counted, though it is answered within it. Reading counters at its beginning moves the
// moments, so that no request is charged for it and none is left out.
func TestLoad_WarmUpIsNotCounted(t *testing.T) {
	for _, rate := range []float64{0, 1000} {
		gate := make(chan struct{})
		server := serve(t, func(conn net.Conn) {
			buffer := make([]byte, 1024)
			if readRequest(conn, buffer) {
				<-gate
				write(conn, plainReply)
				answering(plainReply)(conn)
			}
		})
		asker, l := simplest(), short(server.Addr().String(), 4, rate)
		l.asker = asker
		d := driverOf(t, l)
		least, most := uint64(4), uint64(4) // as many as there are connections, since no answer came before
		l.begins = func() error {
			if rate > 0 { // and those that wait for a connection
				least = uint64(l.warmup.Seconds() * rate)
				for most = 0; d.moment(most) <= d.now(); most++ {
				}
			}
			<-time.NewTimer(50 * time.Millisecond).C
			close(gate)
			return nil
		}
		found, err := d.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if early := asker.asked - found.answers - found.lost; early < least || early > most {
			t.Errorf("rate %v: %d requests are not counted, want %d to %d", rate, early, least, most)
		}
		if all := found.answers + found.lost; rate > 0 && (all < 199 || all > 201) {
			t.Errorf("rate %v: %d requests, want 200", rate, all)
		}
	}
}

// A line stands once in the ring, and comes out of it only while it is free.
func TestRing(t *testing.T) {
	lines := []line{{number: 0, phase: lineFree}, {number: 1, phase: lineFree}, {number: 2, phase: lineFree}}
	r := ring{numbers: make([]int, len(lines))}
	for range 3 {
		for i := range lines {
			r.push(&lines[i])
		}
	}
	lines[1].phase = lineDials
	for _, want := range []*line{&lines[0], &lines[2], nil} {
		if c := r.pop(lines); c != want {
			t.Fatalf("popped %v, want %v", c, want)
		}
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
	server := serve(t, func(conn net.Conn) {
		for read, buffer := 0, make([]byte, 1<<20); ; {
			n, err := conn.Read(buffer)
			if read += n; err != nil || read == bytes && !write(conn, reply) {
				return
			}
			read %= bytes
		}
	})
	l := short(server.Addr().String(), 2, 0)
	l.asker = &repeated{request: strings.Repeat("q", bytes)}
	if found := mustRun(t, l); found.answers == 0 || found.lost != 0 || found.bytes != found.answers*uint64(len(reply)) {
		t.Errorf("%d answers, %d lost, %d bytes; want whole answers of %d", found.answers, found.lost, found.bytes, len(reply))
	}
}

// bound is a port of this process on which nothing listens.
func bound(t *testing.T) string {
	t.Helper()
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(socket) })
	if err := unix.Bind(socket, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", name.(*unix.SockaddrInet4).Port)
}

// A target that is gone, or answers nothing, is an error that says so.
func TestLoad_TargetIsGone(t *testing.T) {
	var count atomic.Uint64
	var dying net.Listener
	ready := make(chan struct{})
	dying = serve(t, func(conn net.Conn) {
		<-ready
		for buffer := make([]byte, 1024); readRequest(conn, buffer); {
			if count.Add(1) == 50 {
				dying.Close() // before its connection ends
				return
			}
			if !write(conn, plainReply) {
				return
			}
		}
	})
	close(ready)
	hangingUp := serve(t, func(conn net.Conn) { readRequest(conn, make([]byte, 1024)) })
	tests := map[string]struct {
		address  string
		rate     float64
		patience time.Duration
		want     error
		says     string
	}{
		"never there":        {bound(t), 0, loadPatience, errGone, "refused"},
		"dies":               {dying.Addr().String(), 0, loadPatience, errGone, "refused"},
		"hangs up":           {hangingUp.Addr().String(), 0, loadPatience, errGone, "one after the other"},
		"hangs up at a rate": {hangingUp.Addr().String(), 5000, loadPatience, errGone, "one after the other"},
		"answers nothing":    {serve(t, silent).Addr().String(), 0, 100 * time.Millisecond, errSilent, "2 requests"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l := short(tt.address, 2, tt.rate)
			if errors.Is(tt.want, errGone) { // that is what ends it, however slow the machine is
				l.measure = time.Hour
			}
			_, err := l.drive(t.Context(), tt.patience)
			if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), tt.address) {
				t.Errorf("error %v, want %v with %q and the address", err, tt.want, tt.says)
			}
		})
	}
}

// An answer to half a request is none: what follows on the connection would be read as the next request.
func TestLoad_AnswerTooSoon(t *testing.T) {
	server := serve(t, func(conn net.Conn) {
		if readRequest(conn, make([]byte, 1024)) && write(conn, plainReply) {
			<-time.NewTimer(20 * time.Millisecond).C // then it hangs up
		}
	})
	l := short(server.Addr().String(), 1, 0)
	l.asker = &repeated{request: strings.Repeat("q", 16<<20)}
	if _, err := l.drive(t.Context(), 100*time.Millisecond); !errors.Is(err, errSilent) && !errors.Is(err, errGone) {
		t.Errorf("error %v, want none of these counted as an answer", err)
	}
}

// The end of the context and an error of a hook end the load.
func TestLoad_Ends(t *testing.T) {
	address := serve(t, answering(plainReply)).Addr().String()
	planted := errors.New("planted")
	ended, cancel := context.WithCancel(t.Context())
	defer cancel()
	tests := map[string]struct {
		spoil func(*load)
		want  error
	}{
		"begins":  {func(l *load) { l.begins = func() error { return planted } }, planted},
		"ends":    {func(l *load) { l.ends = func() error { return planted } }, planted},
		"context": {func(l *load) { l.begins = func() error { cancel(); return nil } }, context.Canceled},

		"nothing to ask":      {func(l *load) { l.asker = nil }, errLoad},
		"no connection":       {func(l *load) { l.connections = 0 }, errLoad},
		"connections":         {func(l *load) { l.connections = 1_000_000 }, errLoad},
		"a negative rate":     {func(l *load) { l.rate = -1 }, errLoad},
		"a rate that is none": {func(l *load) { l.rate /= l.rate }, errLoad},
		"a negative warm-up":  {func(l *load) { l.warmup = -1 }, errLoad},
		"no time":             {func(l *load) { l.measure = 0 }, errLoad},
		"no port":             {func(l *load) { l.address = "127.0.0.1" }, errLoad},
		"port 0":              {func(l *load) { l.address = "127.0.0.1:0" }, errLoad},
		"a port with a name":  {func(l *load) { l.address = "127.0.0.1:http" }, errLoad},
	}
	for name, tt := range tests {
		l, ctx := short(address, 1, 0), t.Context()
		if name == "context" {
			l.measure, ctx = time.Minute, ended
		}
		tt.spoil(l)
		if _, err := l.run(ctx); !errors.Is(err, tt.want) {
			t.Errorf("%s: error %v, want %v", name, err, tt.want)
		}
	}
}

// misbehaviours are what a server may do with a request, besides answering it.
func misbehaviours() []func(net.Conn) (goesOn bool) {
	say := func(goesOn bool, pieces ...string) func(net.Conn) bool {
		return func(conn net.Conn) bool {
			for _, piece := range pieces {
				if !write(conn, piece) {
					return false
				}
			}
			return goesOn
		}
	}
	return []func(net.Conn) bool{
		say(true, plainReply[:9], plainReply[9:30], plainReply[30:]),
		say(false),
		say(false, plainReply[:20]),
		say(false, plainReply[:len(plainReply)-1]),
		say(true, "SSH-2.0-x\r\n\r\n"),
		say(true, plainReply+plainReply),
		say(true, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
		say(true, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx"),
		say(false, "HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"),
		say(false, plainReply), // closes a connection that says nothing of it
		say(false, plainReply, "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"),
		func(conn net.Conn) bool { return conn.(*net.TCPConn).SetLinger(0) != nil }, // then the connection is reset
		func(conn net.Conn) bool { silent(conn); return false },
	}
}

// Whatever the target does: what was sent is answered, lost, or in flight, and in the end one of the first two.
func TestLoad_NothingIsForgotten(t *testing.T) {
	behaviours := misbehaviours()
	for seed := range uint64(sweep(30, 300)) {
		random := rand.New(rand.NewPCG(seed, 0))
		share, connections, rate := 1+random.IntN(50), 1+random.IntN(8), []float64{0, 1000, 20_000}[seed%3]
		var each atomic.Uint64
		server := serve(t, func(conn net.Conn) {
			random := rand.New(rand.NewPCG(seed, each.Add(1)))
			for buffer := make([]byte, 1024); readRequest(conn, buffer); {
				if random.IntN(100) < share {
					if !behaviours[random.IntN(len(behaviours))](conn) {
						return
					}
				} else if !write(conn, plainReply) {
					return
				}
			}
		})
		l := short(server.Addr().String(), connections, rate)
		l.warmup = time.Duration(seed/3%2) * 5 * time.Millisecond
		if err := accounted(t, l); err != nil {
			t.Errorf("seed %d, %d %% of misbehaviour, %d connections, rate %v: %v", seed, share, connections, rate, err)
		}
	}
}

// accounted runs a load and compares what it counted with what was asked, and with what was to be asked.
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
	switch {
	case errors.Is(err, errGone) || errors.Is(err, errSilent): // it met nothing but misbehaviour
		return nil
	case err != nil:
		return err
	case l.warmup == 0 && early > 0:
		return fmt.Errorf("%d requests before the load began", early)
	}
	want := asker.asked - early
	if l.rate > 0 {
		want = 0
		for n := uint64(0); d.moment(n) < d.closes; n++ {
			if d.moment(n) >= d.opens {
				want++
			}
		}
	}
	if got := found.answers + found.lost; d.waiting != 0 || got != want || found.latency.TotalCount() != int64(found.answers) {
		return fmt.Errorf("%d answers (%d latencies) and %d lost of %d, in flight %d", found.answers, found.latency.TotalCount(), found.lost, want, d.waiting)
	}
	return nil
}

// In steady state the load allocates nothing, so that it neither collects garbage nor waits for the collector.
func TestLoad_AllocatesNothing(t *testing.T) {
	server := serve(t, answering(plainReply))
	mallocs := func() uint64 {
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.Mallocs
	}
	for _, rate := range []float64{0, 10_000} {
		l := short(server.Addr().String(), 4, rate)
		l.asker = mustMix(t, []string{"k-1", "k-2"}, mixes("x")[mixConvert], 1)
		var before, after uint64
		l.begins = func() error { before = mallocs(); return nil }
		l.ends = func() error { after = mallocs(); return nil }
		found := mustRun(t, l)
		if after-before > 100+found.answers/100 {
			t.Errorf("rate %v: %d allocations for %d answers, server and all", rate, after-before, found.answers)
		}
	}
}
