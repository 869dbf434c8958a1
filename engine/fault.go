package engine

import (
	"sync"
	"time"
)

// FaultHoldOff is how long a trouble that comes and goes must stay away until it is over: so long that a condition does not flap, and
// less than the five seconds within which it has to show that all is well again.
const FaultHoldOff = 3 * time.Second

// Fault is something that is wrong now and then, or for a while. The zero value is well. It is safe for concurrent use. Times are
// the caller's; where they have a monotonic reading, steps of the wall clock change nothing.
type Fault struct {
	mu      sync.Mutex
	began   time.Time
	last    time.Time
	lasting bool
	noted   bool
}

// Report notes that it has just shown itself.
func (t *Fault) Report(now time.Time) { t.ReportSince(now, now) }

// ReportSince is Report for one that began earlier than it was noticed.
func (t *Fault) ReportSince(began, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.report(began, now)
}

func (t *Fault) report(began, now time.Time) {
	if !t.present(now) {
		t.began = began
	}
	t.last, t.noted = now, true
}

// Begin notes that it lasts until Clear.
func (t *Fault) Begin(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.report(now, now)
	t.lasting = true
}

// Clear notes that it is over, at once: for what can't come back by chance.
func (t *Fault) Clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lasting, t.noted = false, false
}

// Recover notes that it does not last any more; it is over when it has stayed away for FaultHoldOff.
func (t *Fault) Recover(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lasting {
		t.lasting, t.last = false, now
	}
}

// Since is when it began; false when there is none.
func (t *Fault) Since(now time.Time) (time.Time, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.present(now) {
		return time.Time{}, false
	}
	return t.began.Round(0).UTC(), true
}

// present: a clock that went back without a monotonic reading says nothing about how long ago it was.
func (t *Fault) present(now time.Time) bool {
	return t.noted && (t.lasting || now.Sub(t.last).Abs() < FaultHoldOff)
}
