package actors

import (
	"slices"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
)

// remoteEvents is what a currency has heard of other nodes' records and not applied yet. They wait until the book is back; a batch that was
// decided before them is decided again.
type remoteEvents struct {
	remoteSeq    uint64 // messages
	queued       []*remoteBatch
	beingApplied []*remoteBatch // being applied
}

// remoteBatch is a message about another node's record, and the shares of cuts behind it and before the next one.
type remoteBatch struct {
	*commitlog.RemoteEvents[engine.Event]
	snapshotRequests []*commitlog.SnapshotRequest
}

// remote takes in what another node has written.
func (c *currencyActor) remote(m *commitlog.RemoteEvents[engine.Event]) {
	w := &c.writes
	if w.stopped != nil {
		m.Window.Release()
		return
	}
	w.remoteSeq++
	w.queued = append(w.queued, &remoteBatch{RemoteEvents: m}) // bounded by the follower's places
	c.next()
}

// applyRemote has what was heard applied, up to the first cut. False: there is nothing.
func (c *currencyActor) applyRemote() bool {
	w := &c.writes
	if len(w.queued) == 0 {
		return false
	}
	end := 1 + slices.IndexFunc(w.queued, func(l *remoteBatch) bool { return len(l.snapshotRequests) > 0 })
	if end == 0 {
		end = len(w.queued)
	}
	w.beingApplied, w.queued = w.queued[:end:end], w.queued[end:]
	w.snapshotRequests = w.beingApplied[end-1].snapshotRequests
	w.applying = true
	var events []engine.Event
	for _, one := range w.beingApplied {
		events = append(events, one.Events...)
	}
	before := c.view
	c.job(func(func()) mailbox.Message {
		outcome := c.apply(events, before)
		outcome.remote = true
		return outcome
	})
	return true
}

// release gives back what was applied.
func (l *remoteEvents) release() {
	for _, one := range l.beingApplied {
		one.Window.Release()
	}
	l.beingApplied = nil
}

// reject gives up what was heard.
func (l *remoteEvents) reject(why *engine.Error) {
	l.release()
	for _, one := range l.queued {
		one.Window.Release()
		for _, s := range one.snapshotRequests {
			s.Reject(why)
		}
	}
	l.queued = nil
}

// redecide puts the batch that was decided on a state that is no more in front of the others. Nobody hears of it.
func (c *currencyActor) redecide() {
	w := &c.writes
	if w.decideSingly > 0 {
		w.decideSingly += len(w.inFlight.commands)
	}
	w.waiting = slices.Concat(w.inFlight.commands, w.waiting)
	w.inFlight = nil
	c.next()
}
