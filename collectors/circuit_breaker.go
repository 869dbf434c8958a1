package collectors

import (
	"time"

	"github.com/tasard/tasard/engine"
)

// circuitBreaker opens after failuresToOpen consecutive scheduled times (slots) in which the source failed. While it is
// open, the source is tried only in the first slot of each day. It closes when the source can be read again, or when
// the process restarts.
type circuitBreaker struct {
	failuresToOpen int

	failures int       // consecutive slots in which no page of the source could be read
	lastSlot time.Time // the newest slot in which the source was tried
}

// allows reports whether the source may be tried in a slot: in any slot while the circuit is closed, and only on a day
// after lastSlot while it is open. A slot before lastSlot means that the clock was set back; the source may be tried
// then, too.
func (b *circuitBreaker) allows(slot time.Time) bool {
	return !b.open() || engine.DateOf(slot) >= b.nextProbe() || slot.Before(b.lastSlot)
}

// nextProbe returns the day on which the source is tried again while the circuit is open.
func (b *circuitBreaker) nextProbe() engine.Date {
	return engine.DateOf(b.lastSlot).AddDays(1)
}

func (b *circuitBreaker) open() bool { return b.failures >= b.failuresToOpen }

// record must be called at the end of each slot. read means that at least one page was read in the slot.
func (b *circuitBreaker) record(slot time.Time, read bool) {
	b.lastSlot = slot
	if read {
		b.failures = 0
	} else {
		b.failures++
	}
}
