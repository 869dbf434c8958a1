package commitlog

import (
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/engine"
)

// slowMin is the age at which a change that is not on disk makes the disk count as slow.
const slowMin = time.Second

// Health is the condition of the journal and its disk. The Actor and the workers update it; it may be read at any time.
type Health struct {
	Clock    func() time.Time
	Sequence atomic.Uint64 // of the newest durable record
	origin   time.Time

	full           engine.Fault // writes are refused for want of space
	slow           engine.Fault
	failing        engine.Fault // the last snapshot failed
	late           engine.Fault // no snapshot for too many records
	oldestQueued   atomic.Int64 // when the oldest waiting write was queued, see sinceStart; 0 = none
	oldestInFlight atomic.Int64 // the same of the batch being appended
	refusedBytes   atomic.Int64 // size of the newest batch that found no space
	retryBytes     atomic.Int64 // space needed to retry a failed snapshot; 0 = none failed
}

// newHealth measures with the steady clock if there is one.
func newHealth(clock func() time.Time, steady func() time.Duration) *Health {
	h := &Health{Clock: clock, origin: clock()}
	if steady != nil {
		first := steady()
		h.Clock = func() time.Time { return h.origin.Add(steady() - first) }
	}
	return h
}

// sinceStart is an instant for an atomic, never 0.
func (h *Health) sinceStart(now time.Time) int64 { return max(1, int64(now.Sub(h.origin))) }

// noteQueued notes a waiting write; only the oldest counts.
func (h *Health) noteQueued() {
	if h.oldestQueued.Load() == 0 {
		h.oldestQueued.Store(h.sinceStart(h.Clock()))
	}
}

// noteTaken notes that the waiting writes, or the oldest of them, are being appended.
func (h *Health) noteTaken(all bool) {
	h.oldestInFlight.Store(h.oldestQueued.Load())
	if all {
		h.oldestQueued.Store(0)
	}
}

// noteDone notes the end of an append.
func (h *Health) noteDone() {
	h.noteSlow(h.Clock())
	h.oldestInFlight.Store(0)
}

// noteNoMajority stops the measurement: without a majority writes do not wait for the disk.
func (h *Health) noteNoMajority() {
	h.oldestQueued.Store(0)
	h.oldestInFlight.Store(0)
}

// noteSlow checks the age of the oldest change that is not on disk.
func (h *Health) noteSlow(now time.Time) {
	oldest := h.oldestInFlight.Load()
	if oldest == 0 {
		oldest = h.oldestQueued.Load()
	}
	if oldest == 0 {
		return
	}
	if began := h.origin.Add(time.Duration(oldest)); now.Sub(began) > slowMin {
		h.slow.ReportSince(began.Add(slowMin), now)
	}
}

// Disk is the condition of the disk.
func (h *Health) Disk(now time.Time) engine.Condition {
	if since, on := h.full.Since(now); on {
		return engine.Condition{
			Name: "disk", State: "read_only", Since: since,
			Detail: "The disk is nearly full: nothing is changed, keyed requests are refused once their lease is used up, reads go on. Free some space.",
		}
	}
	h.noteSlow(now)
	if since, on := h.slow.Since(now); on {
		return engine.Condition{
			Name: "disk", State: "slow", Since: since,
			Detail: "Changes wait for the disk longer than a second, reads go on. Look for what else writes to it, and at its health.",
		}
	}
	return engine.HealthyCondition("disk")
}

// Snapshot is the condition of snapshots.
func (h *Health) Snapshot(now time.Time) engine.Condition {
	if since, on := h.failing.Since(now); on {
		return engine.Condition{
			Name: "snapshot", State: "failing", Since: since,
			Detail: "The last snapshot could not be written; nothing is lost, but the log grows. Free some space; the log of the process has the cause.",
		}
	}
	if since, on := h.late.Since(now); on {
		return engine.Condition{
			Name: "snapshot", State: "late", Since: since,
			Detail: "Records have come for several snapshots since the last one; nothing is lost, but a start takes longer. Look at the disk.",
		}
	}
	return engine.HealthyCondition("snapshot")
}
