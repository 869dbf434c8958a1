package apitest

import (
	"sync"
	"time"
)

// Epoch is where the clock begins without a seed: noon of a Monday in Santo Domingo.
func Epoch() time.Time { return time.Date(2026, 3, 2, 16, 0, 0, 0, time.UTC) }

// Clock is what the node takes for the time of day. It stands still between Set and Advance, unless it follows another one.
// It may be used by several goroutines.
type Clock struct {
	mu     sync.Mutex
	at     time.Time        // when it stands still
	follow func() time.Time // nil: it stands still
	offset time.Duration    // of what it follows
}

func newClock(at time.Time, follow func() time.Time) *Clock {
	return &Clock{at: at.Round(0).UTC(), follow: follow}
}

// Now is the time of the node.
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

// Advance moves the clock on, or back by a negative span.
func (c *Clock) Advance(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(by)
	c.offset += by
}

// Set moves the clock to an instant.
func (c *Clock) Set(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += at.Sub(c.now())
	c.at = at.Round(0).UTC()
}
