package apitest

import (
	"sync"
	"time"
)

// Epoch is the time at which the clock starts if no option sets another time: a Monday at noon in Santo Domingo.
func Epoch() time.Time { return time.Date(2026, 3, 2, 16, 0, 0, 0, time.UTC) }

// Clock is the node's wall clock. It stands still, or moves with another clock (option FollowClock). Set and Advance
// move it too. It is safe for concurrent use.
type Clock struct {
	mu     sync.Mutex
	fixed  time.Time        // the time, if follow is nil
	follow func() time.Time // the other clock, or nil
	offset time.Duration    // added to the time of follow
}

func newClock(t time.Time, follow func() time.Time) *Clock {
	return &Clock{fixed: t.Round(0).UTC(), follow: follow}
}

// Now returns the node's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

func (c *Clock) now() time.Time {
	if c.follow == nil {
		return c.fixed
	}
	return c.follow().Add(c.offset).Round(0).UTC()
}

// Advance moves the clock forward by d, or backward if d is negative.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fixed = c.fixed.Add(d)
	c.offset += d
}

// Set moves the clock to a time.
func (c *Clock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += t.Sub(c.now())
	c.fixed = t.Round(0).UTC()
}
