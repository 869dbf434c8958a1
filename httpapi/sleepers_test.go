package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// sleepAtOnce has each read fall asleep, whatever has come: none is done by the library unless it is the last of a request.
func sleepAtOnce(server *Server) {
	server.sleepers.idle, server.sleepers.within = server.limits.IdleTimeout, server.limits.ReadTimeout
}

// untilAsleep waits until so many sleep.
func untilAsleep(t testing.TB, s *sleepers, many int) {
	t.Helper()
	eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.asleep) == many
	})
}

// serveAsleep is serve where each connection sleeps as often as it can.
func serveAsleep(t *testing.T, change func(*Config)) *serving {
	t.Helper()
	f := newFixture(t, change)
	sleepAtOnce(f.server)
	return serveFixture(t, f)
}

// TestO3_SleptInOnce: whatever a client says before it pauses, it gets one answer to each request, and what pauses is asleep.
func TestO3_SleptInOnce(t *testing.T) {
	get := request("/v1/currencies")
	const post = "POST /v1/rates HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
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
			t.Parallel()
			s := serveAsleep(t, nil)
			conn, wire := s.dial(t)
			write(t, conn, one.before)
			var told []string
			for range strings.Fields(one.answers) {
				told = append(told, fmt.Sprint(parseAnswer(t, wire, "GET").status))
			}
			if !one.awake {
				untilAsleep(t, s.server.sleepers, 1)
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

// TestO3_SleepGivesNoTime: a request that is slept in has to be there as soon as any other, however often the server looks at it.
func TestO3_SleepGivesNoTime(t *testing.T) {
	const patience = 300 * time.Millisecond
	for name, said := range map[string]string{
		"nothing": "", "a line": "GET /v1/currencies HTTP/1.1\r\nX-", "a body": "POST /v1/rates HTTP/1.1\r\nHost: a\r\nContent-Length: 4000\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serveAsleep(t, func(c *Config) { c.Limits.ReadTimeout = patience })
			began := bubbleNow()
			conn, wire := s.dial(t)
			write(t, conn, said)
			untilAsleep(t, s.server.sleepers, 1)
			dripped := make(chan struct{})
			go func() {
				defer close(dripped)
				for beat := time.NewTicker(patience / 30); said != ""; <-beat.C {
					if _, err := conn.Write([]byte("x")); err != nil {
						return
					}
				}
			}()
			if a := parseAnswer(t, wire, "GET"); a.status != http.StatusRequestTimeout || !a.closes {
				t.Errorf("told %d, and closes %t; want 408", a.status, a.closes)
			}
			if took := bubbleNow().Sub(began); took < patience {
				t.Errorf("it took %v, want %v", took, patience)
			}
			conn.Close()
			<-dripped
		})
	}
}

// TestO3_ShutdownWakesNobody: at the end a client that sleeps between two requests is closed, and one that sleeps in one may end it.
func TestO3_ShutdownWakesNobody(t *testing.T) {
	t.Parallel()
	s := serveAsleep(t, nil)
	idle, _ := s.dial(t)
	within, wire := s.dial(t)
	write(t, within, "GET /v1/rates HTTP/1.1\r\nHos")
	untilAsleep(t, s.server.sleepers, 2)
	ended := make(chan error, 1)
	go func() { ended <- s.server.Shutdown(context.WithoutCancel(t.Context())) }()
	if n, err := idle.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Error("a client that asked nothing is answered")
	}
	select {
	case err := <-ended:
		t.Fatal("the stop did not wait for a request that had begun", err)
	default:
	}
	write(t, within, "t: a\r\n\r\n")
	if a := parseAnswer(t, wire, "GET"); a.status != http.StatusOK || !a.closes {
		t.Errorf("told %d, and closes %t", a.status, a.closes)
	}
	ok(t, <-ended)
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
	s := serveServer(t, server)
	conn, wire := s.dial(t)
	for range 20 {
		askOn(t, conn, wire, "/v1/currencies")
	}
	conn.Close()
	s.stop(t)
	if len(services) != 1 {
		t.Errorf("20 requests of one client in %d services", len(services))
	}
}

// timedConn is a client that says each word at its time, and the time that its server sees.
type timedConn struct {
	feedConn
	words    []word
	now      time.Time
	deadline time.Time
}

type word struct {
	text  string
	comes time.Time
}

func (c *timedConn) SetReadDeadline(t time.Time) error {
	c.deadline = t
	return nil
}

func (c *timedConn) Read(b []byte) (int, error) {
	if len(c.words) == 0 || !c.words[0].comes.Before(c.deadline) {
		if c.now.Before(c.deadline) {
			c.now = c.deadline
		}
		return 0, os.ErrDeadlineExceeded
	}
	said := c.words[0]
	c.words = c.words[1:]
	if c.now.Before(said.comes) {
		c.now = said.comes
	}
	return copy(b, said.text), nil
}

// TestO3_BedtimesAndDeadlines: a read falls asleep at its bedtime, and a request has the time that it had at first.
func TestO3_BedtimesAndDeadlines(t *testing.T) {
	const within, idle, patience, calm = 250 * time.Millisecond, time.Second, 5 * time.Second, time.Minute
	const line, head, body = "GET / HTTP/1.1\r\nHost", ": a\r\nContent-Length: 5\r\n\r\n", "hello"
	began := fakeNow()
	at := func(d time.Duration) time.Time { return began.Add(d) }
	conn := &timedConn{now: began, words: []word{{line, began}, {head, at(3 * time.Second)}, {body, at(4 * time.Second)}, {line, at(8 * time.Second)}}}
	g := &gatherer{lazyDeadlines: lazyDeadlines{Conn: conn}}
	g.nap.of = &sleepers{idle: calm - idle, within: patience - within, keptMax: 1 << 10}
	read := func(now time.Duration, want string) {
		t.Helper()
		room := make([]byte, 1<<10)
		n, err := g.Read(room)
		if got := string(room[:n]); got != want || (err == nil) != (want != "") || !conn.now.Equal(at(now)) {
			t.Fatalf("read %q, %v, %v after the beginning; want %q, %v", got, err, conn.now.Sub(began), want, now)
		}
	}
	wakes := func(now time.Duration, want bool) {
		t.Helper()
		g.nap.falls.Store(false)
		if got := g.await(); got != want || !conn.now.Equal(at(now)) {
			t.Fatalf("slept until %v, and is to be served: %t; want %v, %t", conn.now.Sub(began), got, now, want)
		}
	}
	_ = g.SetReadDeadline(conn.now.Add(patience))
	read(0, line)
	read(within, "")
	wakes(3*time.Second, true)
	_ = g.SetReadDeadline(conn.now.Add(patience)) // the server knows nothing of a sleep
	read(3*time.Second, line+head)
	read(3*time.Second, "") // it was asleep before, and has no more time to stay awake
	wakes(4*time.Second, true)
	read(4*time.Second, line+head+body)
	g.begin(len(line + head + body))
	_, _ = g.Write([]byte("answer"))
	_ = g.SetReadDeadline(conn.now.Add(calm))
	read(5*time.Second, "")
	wakes(8*time.Second, true)
	_ = g.SetReadDeadline(conn.now.Add(patience))
	read(8*time.Second, line)
	read(8*time.Second+within, "")
	wakes(13*time.Second, true) // to be told that it took too long
	_ = g.SetReadDeadline(conn.now.Add(patience))
	read(13*time.Second, "")
	if g.nap.falls.Load() {
		t.Error("it sleeps again after its time was over")
	}
}

// TestO3_NoTimeToFallAsleepIn: where a deadline comes before the bedtime would, there is none.
func TestO3_NoTimeToFallAsleepIn(t *testing.T) {
	limits := Limits{ReadTimeout: sleepWithin / 2, IdleTimeout: sleepIdle / 2}
	s := newSleepers(limits, nil)
	for _, idle := range []bool{false, true} {
		if got := s.bedtime(fakeNow(), idle); !got.Equal(fakeNow()) {
			t.Errorf("idle %t: falls asleep %v before the deadline", idle, fakeNow().Sub(got))
		}
	}
}
