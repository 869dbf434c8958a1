package accounts

import (
	"sync/atomic"
	"time"

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
