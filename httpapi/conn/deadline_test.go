package conn

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// armedConn counts how often its deadlines are set.
type armedConn struct {
	net.Conn
	reads, writes int
}

func (c *armedConn) SetReadDeadline(t time.Time) error {
	c.reads++
	return c.Conn.SetReadDeadline(t)
}

func (c *armedConn) SetWriteDeadline(t time.Time) error {
	c.writes++
	return c.Conn.SetWriteDeadline(t)
}

// inBubble runs a test in a bubble of time, with a connection under test and its other end.
func inBubble(t *testing.T, test func(t *testing.T, conn *lazyDeadlines, counted *armedConn, far net.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		counted := &armedConn{Conn: near}
		test(t, &lazyDeadlines{Conn: counted}, counted, far)
		_, _ = near.Close(), far.Close()
	})
}

func after(d time.Duration) time.Time { return bubbleNow().Add(d) }

// A deadline ends a call at its moment and not before, whatever was armed.
func TestO3_LazyReadDeadline(t *testing.T) {
	for name, test := range map[string]struct{ first, second time.Duration }{ // deadlines of two calls, the first of which is answered
		"the same":         {5 * time.Second, 5 * time.Second},
		"later":            {5 * time.Second, time.Minute},
		"sooner":           {time.Minute, 5 * time.Second},
		"after none":       {0, 5 * time.Second},
		"long ago":         {time.Nanosecond, 5 * time.Second},
		"past when called": {5 * time.Second, -time.Second},
	} {
		inBubble(t, func(t *testing.T, conn *lazyDeadlines, _ *armedConn, far net.Conn) {
			reads := func() {
				t.Helper()
				if n, err := conn.Read(make([]byte, 1)); n != 1 || err != nil {
					t.Fatal(name, n, err)
				}
			}
			go func() { _, _ = far.Write([]byte("x")) }()
			if test.first != 0 {
				_ = conn.SetReadDeadline(after(test.first + time.Second))
			}
			reads()
			bubbleSleep(2 * time.Second)
			from := bubbleNow()
			_ = conn.SetReadDeadline(from.Add(test.second))
			_, err := conn.Read(make([]byte, 1))
			if took := bubbleNow().Sub(from); !errors.Is(err, os.ErrDeadlineExceeded) || took != max(0, test.second) {
				t.Fatalf("%s: ended after %s with %v, want %s", name, took, err, test.second)
			}
			_ = conn.SetReadDeadline(time.Time{})
			go func() {
				bubbleSleep(time.Hour)
				_, _ = far.Write([]byte("x"))
			}()
			reads()
		})
	}
}

// A write that an old deadline interrupts goes on where it was.
func TestO3_LazyWriteDeadline(t *testing.T) {
	inBubble(t, func(t *testing.T, conn *lazyDeadlines, _ *armedConn, far net.Conn) {
		read := make(chan []byte)
		go func() {
			got := make([]byte, 4)
			_, _ = io.ReadFull(far, got[:2])
			bubbleSleep(7 * time.Second)
			_, _ = io.ReadFull(far, got[2:])
			read <- got
		}()
		_ = conn.SetWriteDeadline(after(5 * time.Second))
		if n, err := conn.Write([]byte("a")); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		_ = conn.SetWriteDeadline(after(10 * time.Second))
		if n, err := conn.Write([]byte("bcd")); n != 3 || err != nil {
			t.Fatal(n, err)
		}
		if got := <-read; string(got) != "abcd" {
			t.Fatalf("%q arrived", got)
		}
		from := bubbleNow()
		_ = conn.SetWriteDeadline(from.Add(3 * time.Second))
		n, err := conn.Write([]byte("e"))
		if took := bubbleNow().Sub(from); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) || took != 3*time.Second {
			t.Fatalf("%d bytes, %v after %s: the other end does not read", n, err, took)
		}
	})
}

// TestF1_DeadlinesAreRarelyArmed: a busy connection arms one a minute, not three for each request.
func TestF1_DeadlinesAreRarelyArmed(t *testing.T) {
	inBubble(t, func(t *testing.T, conn *lazyDeadlines, counted *armedConn, far net.Conn) {
		go func() {
			buffer := make([]byte, 1)
			for {
				if _, err := far.Write([]byte("q")); err != nil {
					return
				}
				if _, err := far.Read(buffer); err != nil {
					return
				}
			}
		}()
		const requests = 1000
		for range requests {
			_ = conn.SetReadDeadline(after(time.Minute))
			must(conn.Read(make([]byte, 1)))
			_ = conn.SetReadDeadline(after(5 * time.Second))
			_ = conn.SetWriteDeadline(after(10 * time.Second))
			must(conn.Write([]byte("a")))
			bubbleSleep(60 * time.Millisecond)
		}
		if counted.reads > 3 || counted.writes > 8 {
			t.Errorf("%d and %d deadlines armed for %d requests in a minute", counted.reads, counted.writes, requests)
		}
	})
}
