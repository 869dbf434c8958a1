package commitlog

import (
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/engine"
)

// slowMin: Health reports a slow disk if a write is not durable after this time.
const slowMin = time.Second

// Health describes the journal and its disk. The Actor and the workers update it. Any goroutine may read it.
type Health struct {
	Clock     func() time.Time
	Sequence  atomic.Uint64 // number (sequence) of the newest durable record
	startTime time.Time
	shared    bool // several nodes share the journal, so a write also waits for other nodes

	diskFull        engine.Fault // the journal rejects writes because the disk has too little space
	diskSlow        engine.Fault
	snapshotFailing engine.Fault // the newest attempt to take a snapshot failed
	snapshotLate    engine.Fault // several snapshots are overdue; see snapshotPlan.late
	waitsSince      atomic.Int64 // since when writes wait, or the end of the last batch if later in nanoseconds after startTime; 0 = none
	rejectedBytes   atomic.Int64 // size of the newest batch that did not fit on the disk
	retryBytes      atomic.Int64 // free space at which a failed snapshot is tried again; 0 = no retry
}

// newHealth returns a Health. Its clock is monotonic, or clock if monotonic is nil.
func newHealth(clock func() time.Time, monotonic func() time.Duration) *Health {
	h := &Health{Clock: clock, startTime: clock()}
	if monotonic != nil {
		first := monotonic()
		h.Clock = func() time.Time { return h.startTime.Add(monotonic() - first) }
	}
	return h
}

// noteWaiting is called after each change of the number of writes that wait or are in flight.
func (h *Health) noteWaiting(writes int) {
	if writes == 0 {
		h.waitsSince.Store(0)
	} else if h.waitsSince.Load() == 0 {
		h.waitsSince.Store(max(1, int64(h.Clock().Sub(h.startTime))))
	}
}

// noteDone is called at the end of the batch in flight.
func (h *Health) noteDone() {
	h.noteSlow(h.Clock())
	h.waitsSince.Store(0)
}

// full reports whether the disk is full.
func (h *Health) full() bool {
	_, full := h.diskFull.Since(h.Clock())
	return full
}

// Waits reports whether a change is waiting for the journal.
func (h *Health) Waits() bool { return h.waitsSince.Load() != 0 }

// noteCopy reports a full or slow disk of this node's own copy of a SharedJournal.
func (h *Health) noteCopy(copyHealth ClusterHealth) {
	now := h.Clock()
	if copyHealth.DiskFull {
		h.diskFull.Begin(now)
	} else if since := copyHealth.DiskSince; !since.IsZero() && now.Sub(since) > slowMin {
		h.diskSlow.ReportSince(since.Add(slowMin), now)
	}
}

// noteSlow reports a slow disk if writes have waited for slowMin. It ignores writes to a SharedJournal, which may wait
// for other nodes; noteCopy reports a slow disk there.
func (h *Health) noteSlow(now time.Time) {
	waits := h.waitsSince.Load()
	if since := h.startTime.Add(time.Duration(waits) + slowMin); waits != 0 && !h.shared && now.After(since) {
		h.diskSlow.ReportSince(since, now)
	}
}

// Disk returns the condition of the disk.
func (h *Health) Disk(now time.Time) engine.Condition {
	if since, on := h.diskFull.Since(now); on {
		return engine.Condition{
			Name: "disk", State: "read_only", Since: since,
			Detail: "The disk is nearly full: changes are rejected, and requests with a key once its quota lease is used up. Reads go on. Free some space.",
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
			Detail: "The last snapshot could not be written; nothing is lost, but the journal grows. Free some space; the log output of the process has the cause.",
		}
	}
	if since, on := h.snapshotLate.Since(now); on {
		return engine.Condition{
			Name: "snapshot", State: "late", Since: since,
			Detail: "Several snapshots were due since the last one; nothing is lost, but a start takes longer. Look at the disk.",
		}
	}
	return engine.HealthyCondition("snapshot")
}
