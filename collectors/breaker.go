package collectors

import (
	"time"

	"github.com/tasard/tasard/engine"
)

// breaker spares a source that has failed for long: after a number of slots in a row it rests, and is tried only in the first
// slot of a day, until something can be read again. So one that was silent over a weekend is heard on Monday at 08:00. It lives in
// memory: after a restart each source is tried anew.
type breaker struct {
	after int // failed slots in a row until it rests
	days  int // from one try of a resting source to the next

	failed int       // slots in a row in which nothing could be read
	last   time.Time // the slot that was tried last
}

// lets reports whether the source is to be tried in a slot. One before the last (a clock that went back) says nothing about
// the rest that is left, so the source is tried.
func (b *breaker) lets(slot time.Time) bool {
	return !b.resting() || engine.DateOf(slot) >= b.wakes() || slot.Before(b.last)
}

// wakes is the day on which a resting source is tried again.
func (b *breaker) wakes() engine.Date { return engine.DateOf(b.last).AddDays(b.days) }

// resting reports that the source is tried only now and then.
func (b *breaker) resting() bool { return b.failed >= b.after }

// settle takes the outcome of a slot, after its last try.
func (b *breaker) settle(slot time.Time, read bool) {
	b.last = slot
	if read {
		b.failed = 0
	} else {
		b.failed++
	}
}
