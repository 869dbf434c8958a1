package engine

import (
	"sync"
	"time"
)

// FaultHoldOff is how long an intermittent fault must be absent before it counts as over. It is long enough to keep a
// condition from flapping, and shorter than the five seconds within which a recovered node must report so.
const FaultHoldOff = 3 * time.Second

// Fault tracks a fault that comes and goes, or lasts for a while. The zero Fault is absent. It is safe for concurrent
// use. Where times have a monotonic reading, steps of the wall clock have no effect.
type Fault struct {
	mu      sync.Mutex
	began   time.Time
	last    time.Time // zero when absent
	lasting bool
}

// Report notes one occurrence.
func (f *Fault) Report(now time.Time) { f.ReportSince(now, now) }

// ReportSince notes an occurrence that began before it was detected.
func (f *Fault) ReportSince(began, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.present(now) {
		f.began = began
	}
	f.last = now
}

// Begin notes that the fault lasts until Recover or Clear.
func (f *Fault) Begin(now time.Time) {
	f.Report(now)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lasting = true
}

// Clear ends the fault at once, for faults that can't come back by chance.
func (f *Fault) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lasting, f.last = false, time.Time{}
}

// Recover ends a lasting fault; it is over after FaultHoldOff.
func (f *Fault) Recover(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lasting {
		f.lasting, f.last = false, now
	}
}

// Since returns when the fault began; false when there is none.
func (f *Fault) Since(now time.Time) (time.Time, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.present(now) {
		return time.Time{}, false
	}
	return f.began.Round(0).UTC(), true
}

// present compares by distance: without a monotonic reading the clock may have been set back.
func (f *Fault) present(now time.Time) bool {
	return f.lasting || !f.last.IsZero() && now.Sub(f.last).Abs() < FaultHoldOff
}
