package collectors

import (
	"time"

	"github.com/tasard/tasard/engine"
)

// circuitBreaker spares a source that has failed for long: after a number of slots in a row it rests, and is tried only in the first
// slot of a day, until something can be read again. So one that was silent over a weekend is heard on Monday at 08:00. It lives in
// memory: after a restart each source is tried anew.
type circuitBreaker struct {
	failuresToOpen int // failed slots in a row until it rests

	failures int       // slots in a row in which nothing could be read
	lastSlot time.Time // the slot that was tried last
}

// allows reports whether the source is to be tried in a slot. One before the last (a clock that went back) says nothing about
// the rest that is left, so the source is tried.
func (b *circuitBreaker) allows(slot time.Time) bool {
	return !b.open() || engine.DateOf(slot) >= b.nextProbe() || slot.Before(b.lastSlot)
}

// nextProbe is the day on which a resting source is tried again.
func (b *circuitBreaker) nextProbe() engine.Date {
	return engine.DateOf(b.lastSlot).AddDays(1)
}

// open reports that the source is tried only now and then.
func (b *circuitBreaker) open() bool { return b.failures >= b.failuresToOpen }

// record takes the outcome of a slot, after its last try.
func (b *circuitBreaker) record(slot time.Time, read bool) {
	b.lastSlot = slot
	if read {
		b.failures = 0
	} else {
		b.failures++
	}
}
