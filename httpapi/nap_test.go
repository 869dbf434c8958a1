package httpapi

import (
	"os"
	"testing"
	"time"
)

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

// TestO3_BedtimesAndDeadlines: a read falls asleep at its bedtime; a request has the time that it had at first, however often it is slept
// in; and the time that a sleeper is waited for is no bedtime of what follows.
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
