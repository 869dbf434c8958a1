package actors

import (
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/engine"
)

// steadyClock tells the moment on both clocks (engine.Moment). Steady time goes on where the log ended and
// never goes back; it stands still while no node runs.
type steadyClock struct {
	wall   func() time.Time
	steady func() time.Duration // nil: the monotonic part of wall
	origin time.Time
	first  time.Duration // what steady said at the origin
	base   time.Duration // newest in the log; set before the first moment is asked for
	newest atomic.Int64
}

func newSteadyClock(wall func() time.Time, steady func() time.Duration) *steadyClock {
	c := &steadyClock{wall: wall, steady: steady, origin: wall()}
	if steady != nil {
		c.first = steady()
	}
	return c
}

// resume begins to count at the newest steady time in the log.
func (c *steadyClock) resume(base time.Duration) {
	c.base = base
	c.newest.Store(int64(base))
	c.origin = c.wall()
	if c.steady != nil {
		c.first = c.steady()
	}
}

// now is the present moment. It allocates nothing.
func (c *steadyClock) now() engine.Moment {
	wall := c.wall()
	since := wall.Sub(c.origin)
	if c.steady != nil {
		since = c.steady() - c.first
	}
	steady := int64(c.base + since)
	for {
		last := c.newest.Load()
		if steady <= last {
			return engine.Moment{Wall: wall, Steady: time.Duration(last)}
		}
		if c.newest.CompareAndSwap(last, steady) {
			return engine.Moment{Wall: wall, Steady: time.Duration(steady)}
		}
	}
}

// start is the moment at which this process began to count.
func (c *steadyClock) start() engine.Moment { return engine.Moment{Wall: c.origin, Steady: c.base} }
