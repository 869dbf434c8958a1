package collectors

import "time"

// breaker spares a source that has failed for long: after a number of slots in a row it rests, and is tried once in a span
// instead of in every slot, until something can be read again. It lives in memory: after a restart each source is tried anew.
type breaker struct {
	after int           // failed slots in a row until it rests
	span  time.Duration // between two tries of a resting source

	failed int       // slots in a row in which nothing could be read
	last   time.Time // the slot that was tried last
}

// lets reports whether the source is to be tried in a slot. One before the last (a clock that went back) says nothing about
// the rest that is left, so the source is tried.
func (b *breaker) lets(slot time.Time) bool {
	rested := slot.Sub(b.last)
	return !b.resting() || rested >= b.span || rested < 0
}

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
