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

// replication is the Actor's state for a SharedJournal. There, a batch of writes is a single record, a bundle. The
// Actor proposes the bundle for the next number (sequence) after the last delivered record:
//
//	owner      makes records from its state, and sends a Write with the number of RemoteEvents received so far
//	Actor      packs waiting writes into a bundle with a new token; the writer proposes the bundle for one sequence
//	follower   delivers the record that won the sequence: this bundle or another node's
//	Actor      this bundle: commits its writes
//	           another bundle: sends its events to their owners (RemoteEvents), rejects these owners' writes
//	           (ErrConflict), and proposes the other writes again
//	owner      applies the events; after ErrConflict it makes its records again from the new state
//
// An owner's rules therefore hold across all nodes. A write is committed when its record is delivered, not when Append
// returns. All nodes apply all records in the same order, so their snapshots at one sequence are equal. The follower
// pauses while ReplicationWindow records are delivered but not yet applied. All writes are rejected while the cluster
// has no majority or this node's disk is full. Meanwhile reads work, and accounts can spend quota already leased by
// this node.
type replication struct {
	currencies map[string]*mailbox.Ref
	sent       map[*mailbox.Ref]uint64 // number of RemoteEvents messages sent to each owner
	stopping   bool                    // the node stops
}

// stale reports whether the owner made the records before it received all RemoteEvents sent to it.
func (r *replication) stale(w *Write) bool { return w.RemoteSeq != r.sent[w.From] }

func (a *Actor) writeProblem() error { return Majority{a.log.Shared}.writeProblem() }

// writesBlocked tells the Actor that this node's changes cannot become durable (Majority.writeProblem).
type writesBlocked struct{ mailbox.OneWay }

// nodeStopping tells the Actor that the node is stopping. Without a majority, the Actor then abandons the proposed
// bundle.
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

// proposalReturned handles the return of Append. It does not answer the writes, because delivered does.
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
		a.log.Health.Sequence.Store(m.Sequence) // before the callers get their answers
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

// route sends the events of another node's record to their owners. Shards come before the registrar, so that an account
// exists before its sessions.
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

// revalidate follows another node's record. It rejects writes made stale by the record, and queues the others again in
// order.
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

// writesBlocked rejects waiting writes. The proposed bundle may still be committed, so it is abandoned only at a stop.
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

// abandonProposal sends an error to the owners of the proposed bundle. This process will not learn its outcome.
func (a *Actor) abandonProposal() {
	batch, cause := a.inFlight, ErrOutcomeUnknown
	if !a.replication.stopping {
		cause = writeError(a.stopCause)
	}
	a.inFlight = nil
	rejectWrites(batch, cause)
}
