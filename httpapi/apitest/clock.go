package apitest

import (
	"sync"
	"time"
)

// Epoch is the time at which the clock starts without a seed: noon of a Monday in Santo Domingo.
func Epoch() time.Time { return time.Date(2026, 3, 2, 16, 0, 0, 0, time.UTC) }

// Clock is the node's wall clock. It stands still between Set and Advance, unless it follows another clock. It is safe
// for concurrent use.
type Clock struct {
	mu     sync.Mutex
	at     time.Time        // the time while it stands still
	follow func() time.Time // nil = it stands still
	offset time.Duration    // from the clock that it follows
}

func newClock(at time.Time, follow func() time.Time) *Clock {
	return &Clock{at: at.Round(0).UTC(), follow: follow}
}

// Now returns the node's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

func (c *Clock) now() time.Time {
	if c.follow == nil {
		return c.at
	}
	return c.follow().Add(c.offset).Round(0).UTC()
}

// Advance moves the clock forward, or back if the duration is negative.
func (c *Clock) Advance(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(by)
	c.offset += by
}

// Set moves the clock to a time.
func (c *Clock) Set(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += at.Sub(c.now())
	c.at = at.Round(0).UTC()
}
