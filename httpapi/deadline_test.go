package httpapi

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

// lazyPair is a connection under test and its other end.
func lazyPair() (*lazyDeadlines, *armedConn, net.Conn) {
	near, far := net.Pipe()
	counted := &armedConn{Conn: near}
	return &lazyDeadlines{Conn: counted}, counted, far
}

// A deadline ends a call at its moment and not before, whatever was armed.
func TestO3_LazyReadDeadline(t *testing.T) {
	tests := map[string]struct{ first, second time.Duration }{ // deadlines of two calls, the first of which is answered
		"the same":         {5 * time.Second, 5 * time.Second},
		"later":            {5 * time.Second, time.Minute},
		"sooner":           {time.Minute, 5 * time.Second},
		"after none":       {0, 5 * time.Second},
		"long ago":         {time.Nanosecond, 5 * time.Second},
		"past when called": {5 * time.Second, -time.Second},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, _, far := lazyPair()
				defer far.Close()
				go func() { _, _ = far.Write([]byte("x")) }()
				if test.first != 0 {
					_ = conn.SetReadDeadline(bubbleNow().Add(test.first + time.Second))
				}
				if n, err := conn.Read(make([]byte, 1)); n != 1 || err != nil {
					t.Fatal(n, err)
				}
				bubbleSleep(2 * time.Second)
				from := bubbleNow()
				_ = conn.SetReadDeadline(from.Add(test.second))
				_, err := conn.Read(make([]byte, 1))
				if took := bubbleNow().Sub(from); !errors.Is(err, os.ErrDeadlineExceeded) || took != max(0, test.second) {
					t.Fatalf("ended after %s with %v, want %s", took, err, test.second)
				}
				_ = conn.SetReadDeadline(time.Time{})
				go func() {
					bubbleSleep(time.Hour)
					_, _ = far.Write([]byte("x"))
				}()
				if n, err := conn.Read(make([]byte, 1)); n != 1 || err != nil {
					t.Fatal("without a deadline:", n, err)
				}
			})
		})
	}
}

// A write that an old deadline interrupts goes on where it was.
func TestO3_LazyWriteDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, _, far := lazyPair()
		defer far.Close()
		read := make(chan []byte)
		go func() {
			got := make([]byte, 4)
			_, _ = io.ReadFull(far, got[:2])
			bubbleSleep(7 * time.Second)
			_, _ = io.ReadFull(far, got[2:])
			read <- got
		}()
		_ = conn.SetWriteDeadline(bubbleNow().Add(5 * time.Second))
		if n, err := conn.Write([]byte("a")); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		_ = conn.SetWriteDeadline(bubbleNow().Add(10 * time.Second))
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
			t.Fatalf("%d bytes, %v after %s: nobody reads", n, err, took)
		}
	})
}

// TestF1_DeadlinesAreRarelyArmed: a busy connection arms one a minute, not three for each request.
func TestF1_DeadlinesAreRarelyArmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, counted, far := lazyPair()
		defer far.Close()
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
			_ = conn.SetReadDeadline(bubbleNow().Add(time.Minute))
			if _, err := conn.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			_ = conn.SetReadDeadline(bubbleNow().Add(5 * time.Second))
			_ = conn.SetWriteDeadline(bubbleNow().Add(10 * time.Second))
			if _, err := conn.Write([]byte("a")); err != nil {
				t.Fatal(err)
			}
			bubbleSleep(60 * time.Millisecond)
		}
		if counted.reads > 3 || counted.writes > 8 {
			t.Errorf("%d and %d deadlines armed for %d requests in a minute", counted.reads, counted.writes, requests)
		}
		_ = conn.Conn.Close()
	})
}

// bubbleNow and bubbleSleep are the doors of these tests to the time of their bubble, which costs none.
func bubbleNow() time.Time { return time.Now() } //nolint:forbidigo // see above

func bubbleSleep(d time.Duration) { <-time.NewTimer(d).C }
