package httpapi

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"
)

const (
	// sleepIdle is how long a connection waits for its next request before it falls asleep. One that asks more often than that never
	// does, and costs one timer in that time.
	sleepIdle = time.Second
	// sleepWithin is the same for the rest of a request that has begun, and for the first one.
	sleepWithin = 250 * time.Millisecond
	// sleepRoom is what a sleeping connection reads into at least.
	sleepRoom = 256
)

// errAsleep ends the server's work for a connection that has fallen asleep. The library takes it for a client that took too long.
var errAsleep = fmt.Errorf("asleep: %w", os.ErrDeadlineExceeded)

// sleepers are the connections that wait without anything of the library: while it waits for a byte it holds a reader, a writer, the
// request and the response, some 25 KiB. Ten thousand clients that send a byte now and then, or nothing, would cost 250 MiB.
//
// A read that lasts (sleepIdle, sleepWithin) fails with errAsleep. The library gives up the connection, which is not closed then: it
// comes here with what it had of a request (nap), and a goroutine of its own reads on. When the request is there, or its head, or its time
// is over, the library serves the connection anew and reads first what was kept. It never waits long with its buffers except for a
// client that takes nothing of its answer.
type sleepers struct {
	serve        func(*slottedTCP)
	idle, within time.Duration // how long before the deadline a read falls asleep; 0 or less: it does not
	keptMax      int           // bytes of a request

	mu     sync.Mutex
	asleep map[*slottedTCP]struct{} // those that wait now
	here   int                      // those that have a goroutine
	ended  bool                     // whoever has begun no request has to go
	gone   chan struct{}            // closed when it has ended and nobody is here
}

func newSleepers(l Limits, serve func(*slottedTCP)) *sleepers {
	return &sleepers{
		serve: serve, idle: l.IdleTimeout - sleepIdle, within: l.ReadTimeout - sleepWithin, keptMax: l.HeaderBytesMax + l.BodyBytesMax,
		asleep: map[*slottedTCP]struct{}{}, gone: make(chan struct{}),
	}
}

// bedtime is when a read falls asleep whose deadline is given.
func (s *sleepers) bedtime(deadline time.Time, idle bool) time.Time {
	if idle {
		return deadline.Add(-max(0, s.idle))
	}
	return deadline.Add(-max(0, s.within))
}

// take lets a connection sleep that the library has given up; false: it has to be closed.
func (s *sleepers) take(c *slottedTCP) bool {
	if !s.settle(c, 1) {
		return false
	}
	go s.tend(c)
	return true
}

// settle notes that a connection sleeps, with a goroutine that comes with it or was there; false: it may not.
func (s *sleepers) settle(c *slottedTCP, comes int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended && (len(c.nap.kept) == 0 || s.here == 0) {
		return false
	}
	s.here += comes
	s.asleep[c] = struct{}{}
	return true
}

// tend waits for a connection's requests, and has them served, until it is closed or asks so often that the library keeps it for good.
func (s *sleepers) tend(c *slottedTCP) {
	defer s.leave()
	c.nap.tended.Store(true)
	for {
		served := c.await()
		s.mu.Lock()
		delete(s.asleep, c)
		s.mu.Unlock()
		if !served {
			break
		}
		s.serve(c)
		if !c.nap.falls.Load() {
			return // it was closed
		}
		if !s.settle(c, 0) {
			break
		}
		c.nap.falls.Store(false)
	}
	_ = c.end() // nobody is there to be told
}

// leave ends a goroutine.
func (s *sleepers) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.here--
	s.seeOff()
}

// seeOff tells when nobody is here any more.
func (s *sleepers) seeOff() {
	if s.ended && s.here == 0 {
		close(s.gone)
	}
}

// end closes those that have begun no request, and lets nobody sleep any more but for the rest of one.
func (s *sleepers) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.ended = true
	for c := range s.asleep {
		if !c.nap.begun.Load() {
			_ = c.Conn.Close() // its goroutine notices, and gives its place back
		}
	}
	s.seeOff()
}

// wait waits until the last is gone.
func (s *sleepers) wait(ctx context.Context) error {
	select {
	case <-s.gone:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
