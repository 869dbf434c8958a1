package engine

import (
	"sync"
	"time"
)

// FaultHoldOff is the time for which an intermittent fault must be absent before it has ended. It is long enough to
// keep a condition from flapping, and shorter than the five seconds within which a node must report its recovery.
const FaultHoldOff = 3 * time.Second

// Fault tracks an intermittent or lasting fault. The zero Fault is absent. It is safe for concurrent use. If the times
// have a monotonic clock reading, changes of the wall clock have no effect.
type Fault struct {
	mu      sync.Mutex
	start   time.Time
	last    time.Time // last report, zero if absent
	lasting bool
}

// Report records an occurrence.
func (f *Fault) Report(now time.Time) { f.ReportSince(now, now) }

// ReportSince records an occurrence that began before now.
func (f *Fault) ReportSince(start, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.present(now) {
		f.start = start
	}
	f.last = now
}

// Begin records a fault that lasts until Recover or Clear.
func (f *Fault) Begin(now time.Time) {
	f.Report(now)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lasting = true
}

// Clear ends the fault without a hold-off. It is for faults that can't be intermittent.
func (f *Fault) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lasting, f.last = false, time.Time{}
}

// Recover ends a lasting fault after FaultHoldOff.
func (f *Fault) Recover(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lasting {
		f.lasting, f.last = false, now
	}
}

// Since returns the time at which the fault began, or false if there is no fault.
func (f *Fault) Since(now time.Time) (time.Time, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.present(now) {
		return time.Time{}, false
	}
	return f.start.Round(0).UTC(), true
}

// present reports whether there is a fault. It uses the absolute difference, because the clock may have been set back.
func (f *Fault) present(now time.Time) bool {
	return f.lasting || !f.last.IsZero() && now.Sub(f.last).Abs() < FaultHoldOff
}
