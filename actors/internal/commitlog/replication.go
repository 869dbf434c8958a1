package commitlog

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/wal"
)

// replication is the Actor's state for a SharedJournal, to which several nodes write. An owner is an actor that keeps a
// part of the node's state. In a SharedJournal a batch of writes is a single record, a bundle. The Actor proposes the
// bundle for the number (sequence) after that of the last delivered record:
//
//	owner      makes records from its state, and sends a Write with the number of RemoteEvents that it had received
//	Actor      packs waiting writes into a bundle with a new token; the writer proposes the bundle for one sequence
//	follower   delivers the record that got the sequence: this bundle, or that of another node
//	Actor      this bundle: commits its writes
//	           another bundle: sends its events to their owners (RemoteEvents), rejects the writes of these owners
//	           (ErrConflict), and proposes the other writes again
//	owner      applies the events; after ErrConflict it makes its records again from the new state
//
// A rule that one owner enforces therefore holds across all nodes. A write is committed when its record is delivered,
// not when Append returns. All nodes apply all records in the same order, so their snapshots at one sequence are equal.
// The follower waits while ReplicationWindow records are delivered but not yet applied. While the cluster has no
// majority, or this node's disk is full, all writes are rejected. Reads still work, and accounts can still spend the
// quota that this node has already leased.
type replication struct {
	currencies map[string]*mailbox.Ref
	sent       map[*mailbox.Ref]uint64 // number of RemoteEvents messages sent to each owner
	stopping   bool                    // the node stops
}

// stale reports whether the Actor has sent RemoteEvents that the owner had not received when it made the records.
func (r *replication) stale(w *Write) bool { return w.RemoteSeq != r.sent[w.From] }

func (a *Actor) writeProblem() error { return Majority{a.log.Shared}.writeProblem() }

// writesBlocked tells the Actor that changes of this node cannot become durable (Majority.writeProblem).
type writesBlocked struct{ mailbox.OneWay }

// nodeStopping tells the Actor that the node is stopping. If the cluster has no majority, the Actor then abandons the
// bundle that it has proposed.
type nodeStopping struct{ mailbox.OneWay }

// propose proposes the records of the writes in flight as one bundle.
func (a *Actor) propose(records [][]byte) {
	bundle, err := record.Encode(&record.Bundle{Node: a.log.Shared.Node(), Token: a.log.token.Add(1), Records: records})
	if err != nil {
		a.failStop(err)
		return
	}
	a.submitAppend([][]byte{bundle})
}

// proposalReturned handles the return of Append. It does not answer the writes: delivered does that.
func (a *Actor) proposalReturned(m *appendResult) {
	switch {
	case m.err == nil || errors.Is(m.err, ErrPosition) || a.stopCause != nil:
	case errors.Is(m.err, wal.ErrNoSpace):
		batch := a.inFlight
		a.inFlight = nil
		rejectWrites(batch, ReadOnly(m.err))
	default:
		a.failStop(fmt.Errorf("write to the journal: %w", m.err))
	}
}

func rejectWrites(batch []*Write, cause *engine.Error) {
	for _, w := range batch {
		w.From.Send(&WriteResult{Err: cause})
	}
}

// delivered handles the next record of the journal.
func (a *Actor) delivered(m *Delivered) {
	defer m.Window.Release()
	switch {
	case a.stopCause != nil:
		return
	case m.err != nil:
		a.failStop(fmt.Errorf("record %d: %w", m.Sequence, m.err))
		return
	case m.Sequence != a.last+1:
		a.failStop(fmt.Errorf("record %d was delivered after record %d", m.Sequence, a.last))
		return
	}
	a.last = m.Sequence
	defer a.log.Health.Sequence.Store(m.Sequence)
	a.countAppended(m.records, m.bytes)
	batch := a.inFlight
	a.inFlight = nil
	switch {
	case m.own && len(batch) == 0:
		a.failStop(fmt.Errorf("record %d: this node proposed it for another sequence", m.Sequence))
		return
	case m.own:
		a.commit(batch)
		return
	}
	if err := a.route(m); err != nil {
		a.inFlight = batch
		a.failStop(fmt.Errorf("record %d: %w", m.Sequence, err))
		return
	}
	a.revalidate(batch)
}

// route sends the events in another node's record to their owners. It sends to the shards, which keep the accounts,
// before the registrar, which keeps the sessions. An account therefore exists before its sessions.
func (a *Actor) route(m *Delivered) error {
	r := a.replication
	for currency, events := range m.currencies {
		owner := r.currencies[currency]
		if owner == nil {
			return fmt.Errorf("another node has rates of currency %q, which this node does not know; restart this node", currency)
		}
		r.sendRemote(owner, &RemoteEvents[engine.Event]{Events: events, Window: m.Window.Retain()})
	}
	for i, events := range m.accounts {
		if len(events) > 0 {
			r.sendRemote(a.shards[i], &RemoteEvents[account.Event]{Events: events, Window: m.Window.Retain()})
		}
	}
	if len(m.registry) > 0 {
		r.sendRemote(a.registry, &RemoteEvents[any]{Events: m.registry, Window: m.Window.Retain()})
	}
	return nil
}

func (r *replication) sendRemote(owner *mailbox.Ref, m mailbox.Message) {
	r.sent[owner]++
	owner.Send(m)
}

// revalidate is called after another node's record. It rejects the writes that the record made stale, and queues the
// other writes again in their order.
func (a *Actor) revalidate(batch []*Write) {
	all := slices.Concat(batch, a.waiting)
	a.waiting = nil
	for _, w := range all {
		if a.replication.stale(w) {
			w.From.Send(&WriteResult{Err: ErrConflict})
		} else {
			a.waiting = append(a.waiting, w)
		}
	}
}

// writesBlocked rejects waiting writes. The proposed bundle may still be committed. Only if the node is stopping,
// writesBlocked abandons it.
func (a *Actor) writesBlocked() {
	problem := a.writeProblem()
	switch {
	case problem == nil:
		return
	case a.replication.stopping:
		a.stop(ErrOutcomeUnknown)
		return
	}
	rejectWrites(a.waiting, ReadOnly(problem))
	a.waiting = nil
}

// abandonProposal sends an error to the owners of the proposed bundle. This process will not learn whether the bundle
// was committed.
func (a *Actor) abandonProposal() {
	batch, cause := a.inFlight, ErrOutcomeUnknown
	if !a.replication.stopping {
		cause = writeError(a.stopCause)
	}
	a.inFlight = nil
	rejectWrites(batch, cause)
}
