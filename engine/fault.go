package engine

import (
	"sync"
	"time"
)

// FaultHoldOff is the time without a report after which an intermittent fault has ended. It keeps the node's condition
// from flapping. It must be shorter than five seconds, the limit for reporting a recovery.
const FaultHoldOff = 3 * time.Second

// Fault tracks one fault of a node. Use Report for an intermittent fault, Begin and Recover for a lasting one. The zero
// Fault means no fault. It is safe for concurrent use. With monotonic clock readings, changes of the wall clock have no
// effect.
type Fault struct {
	mu      sync.Mutex
	start   time.Time
	last    time.Time // time of the newest report, or of Recover; zero after Clear
	lasting bool
}

// Report records that the fault occurs now.
func (f *Fault) Report(now time.Time) { f.ReportSince(now, now) }

// ReportSince records that the fault occurs now and began at start.
func (f *Fault) ReportSince(start, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.present(now) {
		f.start = start
	}
	f.last = now
}

// Begin records a fault that lasts until Recover or Clear is called.
func (f *Fault) Begin(now time.Time) {
	f.Report(now)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lasting = true
}

// Clear ends the fault at once, without FaultHoldOff.
func (f *Fault) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lasting, f.last = false, time.Time{}
}

// Recover ends a lasting fault, but with a delay of FaultHoldOff.
func (f *Fault) Recover(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lasting {
		f.lasting, f.last = false, now
	}
}

// Since returns the beginning of the fault, or false if there is none.
func (f *Fault) Since(now time.Time) (time.Time, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.present(now) {
		return time.Time{}, false
	}
	return f.start.Round(0).UTC(), true
}

// present reports whether there is a fault. It takes the absolute difference of times, because the clock may be set
// back.
func (f *Fault) present(now time.Time) bool {
	return f.lasting || !f.last.IsZero() && now.Sub(f.last).Abs() < FaultHoldOff
}
