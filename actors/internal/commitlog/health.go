package commitlog

import (
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/engine"
)

// slowMin is the time after which a write that is not durable makes Health report a slow disk.
const slowMin = time.Second

// Health has the condition of the journal and its disk. The Actor and the workers update it. Any goroutine may read it.
type Health struct {
	Clock     func() time.Time
	Sequence  atomic.Uint64 // of the newest durable record
	startTime time.Time

	diskFull        engine.Fault // writes are rejected because there is no space
	diskSlow        engine.Fault
	snapshotFailing engine.Fault // the last snapshot failed
	snapshotLate    engine.Fault // see snapshotPlan.late
	oldestQueued    atomic.Int64 // time when the oldest waiting write was queued (sinceStart); 0 = none
	oldestInFlight  atomic.Int64 // the same for the batch being appended
	rejectedBytes   atomic.Int64 // size of the last batch that was rejected without space
	retryBytes      atomic.Int64 // space needed to retry a failed snapshot; 0 = no retry
}

// newHealth returns a Health that uses the steady clock, or clock if steady is nil.
func newHealth(clock func() time.Time, steady func() time.Duration) *Health {
	h := &Health{Clock: clock, startTime: clock()}
	if steady != nil {
		first := steady()
		h.Clock = func() time.Time { return h.startTime.Add(steady() - first) }
	}
	return h
}

// sinceStart returns a time as nanoseconds since startTime, at least 1.
func (h *Health) sinceStart(now time.Time) int64 { return max(1, int64(now.Sub(h.startTime))) }

// noteQueued notes that a write was queued.
func (h *Health) noteQueued() {
	if h.oldestQueued.Load() == 0 {
		h.oldestQueued.Store(h.sinceStart(h.Clock()))
	}
}

// noteTaken notes that the oldest waiting writes are being appended. all reports whether no write is left waiting.
func (h *Health) noteTaken(all bool) {
	h.oldestInFlight.Store(h.oldestQueued.Load())
	if all {
		h.oldestQueued.Store(0)
	}
}

// noteDone notes that an append has ended.
func (h *Health) noteDone() {
	h.noteSlow(h.Clock())
	h.oldestInFlight.Store(0)
}

// noteNoMajority forgets waiting writes, because without a majority they do not wait for the disk.
func (h *Health) noteNoMajority() {
	h.oldestQueued.Store(0)
	h.oldestInFlight.Store(0)
}

// noteSlow reports a slow disk if the oldest write that is not durable is older than slowMin.
func (h *Health) noteSlow(now time.Time) {
	oldest := h.oldestInFlight.Load()
	if oldest == 0 {
		oldest = h.oldestQueued.Load()
	}
	if oldest == 0 {
		return
	}
	if queuedAt := h.startTime.Add(time.Duration(oldest)); now.Sub(queuedAt) > slowMin {
		h.diskSlow.ReportSince(queuedAt.Add(slowMin), now)
	}
}

// Disk returns the condition of the disk.
func (h *Health) Disk(now time.Time) engine.Condition {
	if since, on := h.diskFull.Since(now); on {
		return engine.Condition{
			Name: "disk", State: "read_only", Since: since,
			Detail: "The disk is nearly full: nothing is changed, keyed requests are refused once their lease is used up, reads go on. Free some space.",
		}
	}
	h.noteSlow(now)
	if since, on := h.diskSlow.Since(now); on {
		return engine.Condition{
			Name: "disk", State: "slow", Since: since,
			Detail: "Changes wait for the disk longer than a second, reads go on. Look for what else writes to it, and at its health.",
		}
	}
	return engine.HealthyCondition("disk")
}

// Snapshot returns the condition of snapshots.
func (h *Health) Snapshot(now time.Time) engine.Condition {
	if since, on := h.snapshotFailing.Since(now); on {
		return engine.Condition{
			Name: "snapshot", State: "failing", Since: since,
			Detail: "The last snapshot could not be written; nothing is lost, but the log grows. Free some space; the log of the process has the cause.",
		}
	}
	if since, on := h.snapshotLate.Since(now); on {
		return engine.Condition{
			Name: "snapshot", State: "late", Since: since,
			Detail: "Records have come for several snapshots since the last one; nothing is lost, but a start takes longer. Look at the disk.",
		}
	}
	return engine.HealthyCondition("snapshot")
}
