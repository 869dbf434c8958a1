package collectors

import (
	"time"

	"github.com/tasard/tasard/engine"
)

// circuitBreaker opens after a number of consecutive failed slots. A source with an open circuit is tried only in the
// first slot of each day, until it can be read again. For example, a source that was down over a weekend is read on
// Monday at 08:00. The state is in memory, so a restart closes the circuit.
type circuitBreaker struct {
	failuresToOpen int

	failures int       // consecutive slots in which nothing could be read
	lastSlot time.Time // the last slot that was tried
}

// allows reports whether the source is tried in a slot. If the slot is before the last one, the clock was set back, and
// the source is tried.
func (b *circuitBreaker) allows(slot time.Time) bool {
	return !b.open() || engine.DateOf(slot) >= b.nextProbe() || slot.Before(b.lastSlot)
}

// nextProbe returns the day on which a source with an open circuit is tried again.
func (b *circuitBreaker) nextProbe() engine.Date {
	return engine.DateOf(b.lastSlot).AddDays(1)
}

func (b *circuitBreaker) open() bool { return b.failures >= b.failuresToOpen }

// record records the outcome of a slot, after its last try.
func (b *circuitBreaker) record(slot time.Time, read bool) {
	b.lastSlot = slot
	if read {
		b.failures = 0
	} else {
		b.failures++
	}
}
