package commitlog

import (
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/engine"
)

const (
	// slowMin is how old the oldest change that is not on disk may be until the disk is called slow.
	slowMin = time.Second
	// overdueSnapshots is for how many snapshots records may have come since the last one until that is called late.
	overdueSnapshots = 4
)

// Health is what is known of the journal and its disk without asking anybody. The journal actor, the writer and the keeper note, and
// everybody may look.
type Health struct {
	Clock  func() time.Time
	origin time.Time

	full           engine.Fault // writes are refused for want of space
	slow           engine.Fault
	failing        engine.Fault // the last snapshot came to nothing
	late           engine.Fault
	oldestQueued   atomic.Int64  // when the oldest write came that waits for the writer, by age; 0 = none
	oldestInFlight atomic.Int64  // the same of the batch that the writer has
	refusedBytes   atomic.Int64  // bytes of the newest batch that found no space
	Sequence       atomic.Uint64 // of the newest durable record
	retryBytes     atomic.Int64  // bytes for which there must be space before a snapshot that failed is tried again
}

// NewHealth measures by the steady clock where there is one.
func NewHealth(clock func() time.Time, steady func() time.Duration) *Health {
	v := &Health{Clock: clock, origin: clock()}
	if steady != nil {
		first := steady()
		v.Clock = func() time.Time { return v.origin.Add(steady() - first) }
	}
	return v
}

// sinceStart is an instant as the atomics keep it, never zero.
func (v *Health) sinceStart(now time.Time) int64 { return max(1, int64(now.Sub(v.origin))) }

// noteQueued notes a write; only the oldest that waits counts.
func (v *Health) noteQueued() {
	if v.oldestQueued.Load() == 0 {
		v.oldestQueued.Store(v.sinceStart(v.Clock()))
	}
}

// noteTaken notes that the writer has what waited, or the oldest of it.
func (v *Health) noteTaken(all bool) {
	v.oldestInFlight.Store(v.oldestQueued.Load())
	if all {
		v.oldestQueued.Store(0)
	}
}

// noteDone notes that the writer has come back.
func (v *Health) noteDone() {
	v.noteSlow(v.Clock())
	v.oldestInFlight.Store(0)
}

// noteNoMajority notes that no change can become durable for want of a majority: no disk is slow because of that.
func (v *Health) noteNoMajority() {
	v.oldestQueued.Store(0)
	v.oldestInFlight.Store(0)
}

// noteSlow looks at the oldest change that is not on disk.
func (v *Health) noteSlow(now time.Time) {
	oldest := v.oldestInFlight.Load()
	if oldest == 0 {
		oldest = v.oldestQueued.Load()
	}
	if oldest == 0 {
		return
	}
	if began := v.origin.Add(time.Duration(oldest)); now.Sub(began) > slowMin {
		v.slow.ReportSince(began.Add(slowMin), now)
	}
}

// Disk is read_only before it is slow.
func (v *Health) Disk(now time.Time) engine.Condition {
	if since, on := v.full.Since(now); on {
		return engine.Condition{
			Name: "disk", State: "read_only", Since: since,
			Detail: "The disk is nearly full: nothing is changed, keyed requests are refused once their lease is used up, reads go on. Free some space.",
		}
	}
	v.noteSlow(now)
	if since, on := v.slow.Since(now); on {
		return engine.Condition{
			Name: "disk", State: "slow", Since: since,
			Detail: "Changes wait for the disk longer than a second, reads go on. Look for what else writes to it, and at its health.",
		}
	}
	return engine.HealthyCondition("disk")
}

// Snapshot is failing before it is late.
func (v *Health) Snapshot(now time.Time) engine.Condition {
	if since, on := v.failing.Since(now); on {
		return engine.Condition{
			Name: "snapshot", State: "failing", Since: since,
			Detail: "The last snapshot could not be written; nothing is lost, but the log grows. Free some space; the log of the process has the cause.",
		}
	}
	if since, on := v.late.Since(now); on {
		return engine.Condition{
			Name: "snapshot", State: "late", Since: since,
			Detail: "Records have come for several snapshots since the last one; nothing is lost, but a start takes longer. Look at the disk.",
		}
	}
	return engine.HealthyCondition("snapshot")
}
