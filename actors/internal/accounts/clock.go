package accounts

import (
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/engine/account"
)

// monotonicClock reads the wall clock and the monotonic time (account.ClockReading). Monotonic time is how long nodes
// have run on this log. It never goes back: after a restart it continues from the newest monotonic time in the log.
//
// The day of a request comes from the wall clock, which may step. An account is never charged for an earlier day than
// the newest one of which it has leased requests, so a step gives no quota twice (Account.WithDay).
type monotonicClock struct {
	wall            func() time.Time
	monotonic       func() time.Duration // nil: use the monotonic reading of wall
	origin          time.Time            // wall time when resume was called
	monotonicOrigin time.Duration        // result of monotonic at origin
	base            time.Duration        // monotonic time at origin; constant after resume
	steady          bool                 // wall has a monotonic reading, which never goes back
	newest          atomic.Int64         // newest monotonic time; not used if steady
}

// newMonotonicClock returns a clock that begins at 0.
func newMonotonicClock(wall func() time.Time, monotonic func() time.Duration) *monotonicClock {
	c := &monotonicClock{wall: wall, monotonic: monotonic}
	c.resume(0)
	return c
}

// resume sets the monotonic time to base, the newest monotonic time in the log. It must not be called concurrently with
// the other methods.
func (c *monotonicClock) resume(base time.Duration) {
	c.base, c.origin = base, c.wall()
	c.newest.Store(int64(base))
	if c.monotonic != nil {
		c.monotonicOrigin = c.monotonic()
	}
	c.steady = c.monotonic == nil && c.origin != c.origin.Round(0) // Round removes the monotonic reading
}

// start returns the clock reading when resume was called.
func (c *monotonicClock) start() account.ClockReading {
	return account.ClockReading{Wall: c.origin, Monotonic: c.base}
}

// Now reads the clock. It does not allocate.
func (c *monotonicClock) Now() account.ClockReading {
	wall := c.wall()
	return account.ClockReading{Wall: wall, Monotonic: c.monotonicAt(wall)}
}

// monotonicAt returns the monotonic time. wall is the present time. A steady clock needs no newest, whose updates would
// slow down requests on other processors.
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
