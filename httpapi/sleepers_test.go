package httpapi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"go.uber.org/goleak"
)

// sleepAtOnce has each read fall asleep, whatever has come: none is done by the library unless it is the last of a request.
func sleepAtOnce(server *Server) {
	server.sleepers.idle, server.sleepers.within = server.limits.IdleTimeout, server.limits.ReadTimeout
}

// sleepNever has a server as it would be without sleepers.
func sleepNever(server *Server) { server.sleepers = nil }

func awakeAndAsleep(t *testing.T) map[string]*Server {
	t.Helper()
	asleep := newStillServer(t)
	sleepAtOnce(asleep)
	return map[string]*Server{"awake": newStillServer(t), "asleep": asleep}
}

// untilAsleep waits until so many sleep.
func untilAsleep(s *sleepers, many int) {
	for {
		s.mu.Lock()
		sleeping := len(s.asleep)
		s.mu.Unlock()
		if sleeping == many {
			return
		}
		runtime.Gosched()
	}
}

// TestO3_SleptInOnce: whatever a client says before it pauses, it gets one answer to each request, and what pauses is asleep.
func TestO3_SleptInOnce(t *testing.T) {
	const get, post = "GET /v1/currencies HTTP/1.1\r\nHost: a\r\n\r\n", "POST /v1/rates HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
	for name, one := range map[string]struct {
		before, behind    string
		answers, statuses string // before the pause, and all of them
		awake             bool
	}{
		"nothing":                      {"", get, "", "200", false},
		"between two requests":         {get, get, "200", "200 200", false},
		"within a line":                {get[:20], get[20:], "", "200", false},
		"within an end":                {get[:len(get)-1], get[len(get)-1:], "", "200", false},
		"behind an empty line":         {"\r\n", get, "", "200", false},
		"behind a head":                {post[:len(post)-5], post[len(post)-5:], "", "405", false},
		"within a body":                {post[:len(post)-2], post[len(post)-2:] + get, "", "405 200", false},
		"within a chunk":               {chunkedPost[:len(chunkedPost)-9], chunkedPost[len(chunkedPost)-9:], "", "405", false},
		"within a second one":          {get + get[:20], get[20:], "200", "200 200", true},
		"within a second one's body":   {get + post[:len(post)-2], post[len(post)-2:], "", "200 405", true},
		"when it was told to continue": {expecting[:len(expecting)-2], expecting[len(expecting)-2:], "100", "100 405", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveAsleep(t, true, nil)
			defer s.stop(t)
			conn := s.dial(t)
			defer conn.Close()
			write(t, conn, one.before)
			wire := bufio.NewReader(conn)
			var told []string
			for range strings.Fields(one.answers) {
				told = append(told, fmt.Sprint(parseAnswer(t, wire, "GET").status))
			}
			if !one.awake {
				untilAsleep(s.server.sleepers, 1)
			}
			write(t, conn, one.behind)
			for range len(strings.Fields(one.statuses)) - len(told) {
				told = append(told, fmt.Sprint(parseAnswer(t, wire, "GET").status))
			}
			if got := strings.Join(told, " "); got != one.statuses {
				t.Errorf("told %s, want %s", got, one.statuses)
			}
		})
	}
}

const (
	chunkedPost = "POST /v1/rates HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
	expecting   = "POST /v1/rates HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello"
)

// refusedAfter is how long a client that says this, and then a byte now and then, is waited for. It is asleep between them.
func refusedAfter(t *testing.T, said string, patience time.Duration) time.Duration {
	t.Helper()
	s := serveAsleep(t, true, func(c *Config) { c.Limits.ReadTimeout = patience })
	defer s.stop(t)
	began := time.Now() //nolint:forbidigo // a network deadline is real time
	conn := s.dial(t)
	defer conn.Close()
	write(t, conn, said)
	untilAsleep(s.server.sleepers, 1)
	dripped := make(chan struct{})
	go func() {
		defer close(dripped)
		for beat := time.NewTicker(patience / 30); said != ""; <-beat.C {
			if _, err := conn.Write([]byte("x")); err != nil {
				return
			}
		}
	}()
	if a := parseAnswer(t, bufio.NewReader(conn), "GET"); a.status != http.StatusRequestTimeout || !a.closes {
		t.Errorf("told %d, and closes %t; want 408", a.status, a.closes)
	}
	took := time.Since(began) //nolint:forbidigo // the same
	conn.Close()
	<-dripped
	return took
}

// TestO3_SleepGivesNoTime: a request that is slept in has to be there as soon as any other, however often the server looks at it.
func TestO3_SleepGivesNoTime(t *testing.T) {
	const patience = 300 * time.Millisecond
	const tries = 5 // where others want the processors too, one may take its time
	for name, said := range map[string]string{
		"nothing": "", "a line": "GET /v1/currencies HTTP/1.1\r\nX-", "a body": "POST /v1/rates HTTP/1.1\r\nHost: a\r\nContent-Length: 4000\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			took := refusedAfter(t, said, patience)
			for try := 1; try < tries && took > 5*patience; try++ {
				took = refusedAfter(t, said, patience)
			}
			if took < patience || took > 5*patience {
				t.Errorf("it took %v, want %v", took, patience)
			}
		})
	}
}

// TestO3_SleepersHoldLittle: what a client that says nothing more costs. The control never sleeps.
func TestO3_SleepersHoldLittle(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector holds more")
	}
	const many, most, least = 200, 4 << 10, 10 << 10
	for name, said := range map[string]string{
		"idle": "GET /v1/currencies HTTP/1.1\r\nHost: a\r\n\r\n", "head": "GET /v1/currencies HTTP/1.1\r\nX-",
		"body": "POST /v1/rates HTTP/1.1\r\nHost: a\r\nContent-Length: 4000\r\n\r\n{",
	} {
		asleep, awake := heldBy(t, many, said, true), heldBy(t, many, said, false)
		t.Logf("%s: %d bytes each, %d awake", name, asleep, awake)
		if asleep > most {
			t.Errorf("%s: %d bytes each, want %d at most", name, asleep, most)
		}
		if awake < least {
			t.Errorf("%s, control: %d bytes each of those who are awake: what is measured?", name, awake)
		}
	}
}

// TestO3_LargeBodiesAreNotKept: whoever sent a large body holds as much, once it is answered, as who sent a small one.
func TestO3_LargeBodiesAreNotKept(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector holds more")
	}
	const many, most = 200, 1 << 10
	post := func(length int) string {
		return fmt.Sprintf("POST /v1/rates HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s\r\n\r\n", length+4, strings.Repeat("x", length))
	}
	if small, large := heldBy(t, many, post(0), false), heldBy(t, many, post(4000), false); large-small > most {
		t.Errorf("%d bytes each behind a large body, %d behind a small one", large, small)
	}
}

// heldBy is how many bytes of the heap each of so many connections holds that say something and then no more.
func heldBy(t *testing.T, many int, said string, sleeps bool) int {
	t.Helper()
	server := newStillServer(t)
	server.limits.ConnsPerAddress = -1
	sleepers := server.sleepers
	if !sleeps {
		sleepNever(server)
	}
	address, stop := servedBy(t, server)
	defer stop()
	before := heap()
	var conns []net.Conn
	for range many {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
		write(t, conn, said)
		if strings.HasSuffix(said, "\r\n\r\n") {
			var answer [64 << 10]byte
			if _, err := conn.Read(answer[:]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if sleeps {
		untilAsleep(sleepers, many)
	} else {
		for server.http.GetOpenConnectionsCount() < int32(many) {
			runtime.Gosched()
		}
	}
	each := (heap() - before) / many
	for _, conn := range conns {
		conn.Close()
	}
	return each
}

func heap() int {
	runtime.GC()
	runtime.GC() // what pools hold goes with the second
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}

// TestO3_ShutdownWakesNobody: at the end who sleeps between two requests is closed, and who sleeps in one may end it.
func TestO3_ShutdownWakesNobody(t *testing.T) {
	defer goleak.VerifyNone(t, leakOptions()...)
	s := serveAsleep(t, true, nil)
	idle, within := s.dial(t), s.dial(t)
	defer idle.Close()
	defer within.Close()
	write(t, within, "GET /v1/rates HTTP/1.1\r\nHos")
	untilAsleep(s.server.sleepers, 2)
	ended := make(chan error, 1)
	go func() { ended <- s.server.Shutdown(context.WithoutCancel(t.Context())) }()
	if n, err := idle.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Error("somebody who asked nothing is answered")
	}
	select {
	case err := <-ended:
		t.Fatal("the stop did not wait for a request that had begun", err)
	default:
	}
	write(t, within, "t: a\r\n\r\n")
	if a := parseAnswer(t, bufio.NewReader(within), "GET"); a.status != http.StatusOK || !a.closes {
		t.Errorf("told %d, and closes %t", a.status, a.closes)
	}
	if err := errors.Join(<-ended, <-s.served); err != nil {
		t.Error(err)
	}
}

// TestO3_BusyStayAwake: a client that asks again before it is time to sleep never leaves the library.
func TestO3_BusyStayAwake(t *testing.T) {
	server := newStillServer(t)
	server.sleepers.idle, server.sleepers.within = 0, 0
	inner, services := server.http.Handler, map[uint64]int{}
	server.http.Handler = func(ctx *fasthttp.RequestCtx) {
		services[ctx.ConnID()]++
		inner(ctx)
	}
	address, stop := servedBy(t, server)
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	wire := bufio.NewReader(conn)
	for range 20 {
		write(t, conn, "GET /v1/currencies HTTP/1.1\r\nHost: a\r\n\r\n")
		parseAnswer(t, wire, "GET")
	}
	conn.Close()
	stop()
	if len(services) != 1 {
		t.Errorf("20 requests of one client in %d services", len(services))
	}
}
