package actors

import (
	"slices"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
)

// remoteEvents are events from records of other nodes that a currency actor has received but not yet applied. They wait
// until no job, a goroutine that works for the actor, uses the state. If the actor has already decided which events a
// batch of commands causes, but these are not durable yet, it decides the batch again.
type remoteEvents struct {
	remoteSeq    uint64 // number of RemoteEvents messages received
	queued       []*remoteBatch
	beingApplied []*remoteBatch
}

// remoteBatch has the events from one record, and the snapshot requests that came after it and before the next record.
type remoteBatch struct {
	*commitlog.RemoteEvents[engine.Event]
	snapshotRequests []*commitlog.SnapshotRequest
}

// remote queues the events from a record of another node.
func (c *currencyActor) remote(m *commitlog.RemoteEvents[engine.Event]) {
	w := &c.writes
	if w.stopped != nil {
		m.Window.Release()
		return
	}
	w.remoteSeq++
	w.queued = append(w.queued, &remoteBatch{RemoteEvents: m}) // bounded by commitlog.ReplicationWindow
	c.next()
}

// applyRemote starts a job that applies the queued events. It returns false if no events are queued. The job stops
// after the first batch with a snapshot request, because the snapshot must not include later events.
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
	previous := c.view
	c.job(func(func()) mailbox.Message {
		outcome := c.apply(events, previous)
		outcome.remote = true
		return outcome
	})
	return true
}

// release removes the batches in beingApplied from the replication window (commitlog.WindowEntry), which limits how
// many records wait to be applied.
func (r *remoteEvents) release() {
	for _, batch := range r.beingApplied {
		batch.Window.Release()
	}
	r.beingApplied = nil
}

// reject drops all events and rejects the snapshot requests in the queue.
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

// redecide puts the commands of the batch in flight back at the head of the queue, so that they are decided again. It
// is called if the state has changed since the batch was decided.
func (c *currencyActor) redecide() {
	w := &c.writes
	if w.decideSingly > 0 {
		w.decideSingly += len(w.inFlight.commands)
	}
	w.waiting = slices.Concat(w.inFlight.commands, w.waiting)
	w.inFlight = nil
	c.next()
}
