package accounts

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine/account"
)

// monotonicClock reads the wall clock and the monotonic time (account.ClockReading). Monotonic time is the total
// running time of nodes on this log. It never goes back: after a restart it continues from the newest monotonic time in
// the log.
//
// The day of a request comes from the wall clock, which may be set back. This gives no quota twice, because an account
// never charges a day before the newest day of its leases (Account.WithDay).
type monotonicClock struct {
	wall            func() time.Time
	monotonic       func() time.Duration // nil: use wall's monotonic reading
	origin          time.Time            // wall time at the call of resume
	monotonicOrigin time.Duration        // result of monotonic at origin
	base            time.Duration        // monotonic time at origin; constant after resume
	steady          bool                 // wall has a monotonic reading
	newest          atomic.Int64         // newest monotonic time; not used if steady
}

// newMonotonicClock returns a clock that begins at 0.
func newMonotonicClock(wall func() time.Time, monotonic func() time.Duration) *monotonicClock {
	c := &monotonicClock{wall: wall, monotonic: monotonic}
	c.resume(0)
	return c
}

// resume sets the monotonic time to base, the newest monotonic time in the log. Do not call it concurrently with other
// methods.
func (c *monotonicClock) resume(base time.Duration) {
	c.base, c.origin = base, c.wall()
	c.newest.Store(int64(base))
	if c.monotonic != nil {
		c.monotonicOrigin = c.monotonic()
	}
	c.steady = c.monotonic == nil && c.origin != c.origin.Round(0) // Round removes the monotonic reading
}

// start returns the clock reading at the call of resume.
func (c *monotonicClock) start() account.ClockReading {
	return account.ClockReading{Wall: c.origin, Monotonic: c.base}
}

// Now reads the clock. It does not allocate.
func (c *monotonicClock) Now() account.ClockReading {
	wall := c.wall()
	return account.ClockReading{Wall: wall, Monotonic: c.monotonicAt(wall)}
}

// monotonicAt returns the monotonic time at wall, the present time. It updates newest only if the clock is not steady,
// because updates slow down requests on other processors.
func (c *monotonicClock) monotonicAt(wall time.Time) time.Duration {
	elapsed := wall.Sub(c.origin)
	switch {
	case c.steady:
		return c.base + elapsed
	case c.monotonic != nil:
		elapsed = c.monotonic() - c.monotonicOrigin
	}
	for {
		last := c.newest.Load()
		monotonic := max(int64(c.base+elapsed), last)
		if monotonic == last || c.newest.CompareAndSwap(last, monotonic) {
			return time.Duration(monotonic)
		}
	}
}

// FlushDelay is the time for which a shard collects events before it writes them, if no request waits for one of them.
// On a node with one processor the sync of a write stops all requests, so fewer writes are better. Most of these events
// are quota leases, which accounts request seconds before they need them. An account that spends faster ends the delay
// for all shards (writeTimer.flushNow).
const FlushDelay = 250 * time.Millisecond

// checkReturnsInterval is the time between two CheckReturns messages in a cluster.
const checkReturnsInterval = 5 * time.Second

// Flush tells a shard to write its waiting events.
type Flush struct{ mailbox.OneWay }

// CheckReturns tells a shard to send checkReturn to all its accounts.
type CheckReturns struct{ mailbox.OneWay }

// writeTimer sends Flush to all shards FlushDelay after schedule, or at once after flushNow. In a cluster it also sends
// CheckReturns. Its methods do not block.
type writeTimer struct {
	shards []*mailbox.Ref // set before the first message

	mu             sync.Mutex
	delay, returns *time.Timer // nil: not waiting
	ended          bool
}

// schedule makes the shards write after FlushDelay.
func (t *writeTimer) schedule() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.delay == nil && !t.ended {
		t.delay = time.AfterFunc(FlushDelay, t.flushNow)
	}
}

// flushNow makes the shards write now.
func (t *writeTimer) flushNow() {
	t.mu.Lock()
	stopTimer(t.delay)
	t.delay = nil
	t.mu.Unlock()
	t.send(&Flush{})
}

// checkReturns sends CheckReturns from now on.
func (t *writeTimer) checkReturns() {
	t.send(&CheckReturns{})
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended {
		t.returns = time.AfterFunc(checkReturnsInterval, t.checkReturns)
	}
}

func (t *writeTimer) send(m mailbox.Message) {
	for _, shard := range t.shards {
		shard.Send(m)
	}
}

// stop ends the messages. Later events are written only if a request waits for them.
func (t *writeTimer) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	stopTimer(t.delay)
	stopTimer(t.returns)
}

func stopTimer(t *time.Timer) {
	if t != nil {
		t.Stop()
	}
}
