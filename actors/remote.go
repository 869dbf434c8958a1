package actors

import (
	"slices"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
)

// remoteEvents are records of other nodes that a currency has received and not yet applied. They wait while a job owns
// the state. A batch that was decided before they arrived is decided again.
type remoteEvents struct {
	remoteSeq    uint64 // messages received
	queued       []*remoteBatch
	beingApplied []*remoteBatch
}

// remoteBatch is a record of another node, and the snapshot requests between it and the next one.
type remoteBatch struct {
	*commitlog.RemoteEvents[engine.Event]
	snapshotRequests []*commitlog.SnapshotRequest
}

// remote queues a record of another node.
func (c *currencyActor) remote(m *commitlog.RemoteEvents[engine.Event]) {
	w := &c.writes
	if w.stopped != nil {
		m.Window.Release()
		return
	}
	w.remoteSeq++
	w.queued = append(w.queued, &remoteBatch{RemoteEvents: m}) // bounded by the replication window
	c.next()
}

// applyRemote starts a job that applies the queued records, up to the first snapshot request. It returns false if there
// are none.
func (c *currencyActor) applyRemote() bool {
	w := &c.writes
	if len(w.queued) == 0 {
		return false
	}
	end := 1 + slices.IndexFunc(w.queued, func(r *remoteBatch) bool { return len(r.snapshotRequests) > 0 })
	if end == 0 {
		end = len(w.queued)
	}
	w.beingApplied, w.queued = w.queued[:end:end], w.queued[end:]
	w.snapshotRequests = w.beingApplied[end-1].snapshotRequests
	w.applying = true
	var events []engine.Event
	for _, batch := range w.beingApplied {
		events = append(events, batch.Events...)
	}
	before := c.view
	c.job(func(func()) mailbox.Message {
		outcome := c.apply(events, before)
		outcome.remote = true
		return outcome
	})
	return true
}

// release releases the window entries of the applied records.
func (r *remoteEvents) release() {
	for _, batch := range r.beingApplied {
		batch.Window.Release()
	}
	r.beingApplied = nil
}

// reject drops all records and rejects their snapshot requests.
func (r *remoteEvents) reject(err *engine.Error) {
	r.release()
	for _, batch := range r.queued {
		batch.Window.Release()
		for _, s := range batch.snapshotRequests {
			s.Reject(err)
		}
	}
	r.queued = nil
}

// redecide queues the batch again before the waiting commands, because the state on which it was decided has changed.
func (c *currencyActor) redecide() {
	w := &c.writes
	if w.decideSingly > 0 {
		w.decideSingly += len(w.inFlight.commands)
	}
	w.waiting = slices.Concat(w.inFlight.commands, w.waiting)
	w.inFlight = nil
	c.next()
}
