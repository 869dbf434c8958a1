package commitlog

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// replication is the Actor's state for a log that several nodes write. In such a log a batch is one record, a bundle.
// The Actor proposes it for the sequence after the last delivered record:
//
//	owner      makes a decision; its Write has the number of RemoteEvents that it had received
//	Actor      packs waiting writes into a bundle with a new token; the writer proposes it for one sequence
//	follower   delivers the record that got the sequence, from any node
//	Actor      own token: commits the writes. Another node's record: sends RemoteEvents to the owners, rejects writes
//	           that were decided without those events (ErrConflict) and proposes the other writes again
//	owner      applies the events; after a conflict it decides the same commands again, which callers do not notice
//
// A rule that one owner enforces therefore holds across all nodes. Only the log decides the outcome of a write; when
// Append returns, the writer is free, but the outcome is not known. All nodes apply all records in log order, so
// their snapshots at a sequence are the same. The follower waits while ReplicationWindow records are not applied by
// all owners. A lease belongs to one node. Without a majority all writes are rejected; reads and leased quota still
// work.
type replication struct {
	currencies map[string]*mailbox.Ref
	sent       map[*mailbox.Ref]uint64 // number of RemoteEvents sent to each owner
	stopping   bool                    // the node stops
}

// stale reports whether a write was decided without RemoteEvents that were sent to its owner.
func (r *replication) stale(w *Write) bool { return w.RemoteSeq != r.sent[w.From] }

// noMajority reports whether the majority is lost, so that no write can be committed.
func (a *Actor) noMajority() bool { return Quorum{a.log.Shared}.Lost() }

// majorityLost tells the Actor that there is no majority.
type majorityLost struct{ mailbox.OneWay }

// nodeStopping tells the Actor that the node is stopping. Without a majority it then abandons its proposal.
type nodeStopping struct{ mailbox.OneWay }

// proposeBundle proposes the writes in flight as one bundle.
func (a *Actor) proposeBundle(records [][]byte) {
	bundle, err := record.Encode(&record.Bundle{Node: a.log.Shared.Node(), Token: a.log.token.Add(1), Records: records})
	if err != nil {
		a.failStop(err)
		return
	}
	a.submitAppend([][]byte{bundle})
}

// proposalReturned handles the return of Append. The outcome of the proposal comes from a delivered record, before or
// after the return.
func (a *Actor) proposalReturned(m *written) {
	if m.err != nil && !errors.Is(m.err, ErrPosition) && a.stopCause == nil {
		a.failStop(fmt.Errorf("write to the journal: %w", m.err))
	}
}

// delivered handles the next record of the log.
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
		a.failStop(fmt.Errorf("record %d: offered for another place", m.Sequence))
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

// route sends another node's events to their owners. Shards come before the registrar, so that an account exists
// before its sessions.
func (a *Actor) route(m *Delivered) error {
	r := a.replication
	for currency, events := range m.currencies {
		owner := r.currencies[currency]
		if owner == nil {
			return fmt.Errorf("another node has rates of %q, which this one does not know; restart this node", currency)
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

// revalidate rejects writes that another node's record made stale. It queues the others again in their order.
func (a *Actor) revalidate(batch []*Write) {
	if len(batch) > 0 {
		a.log.Health.noteDone()
		a.log.Health.noteQueued()
	}
	all := slices.Concat(batch, a.waiting)
	a.waiting = nil
	for _, w := range all {
		if a.replication.stale(w) {
			w.From.Send(&Committed{Err: ErrConflict})
		} else {
			a.waiting = append(a.waiting, w)
		}
	}
}

// majorityLost rejects waiting writes. It keeps the proposal, unless the node is stopping.
func (a *Actor) majorityLost() {
	switch {
	case !a.noMajority():
		return
	case a.replication.stopping:
		a.stop(ErrOutcomeUnknown)
		return
	}
	a.log.Health.noteNoMajority()
	cause := ReadOnly(ErrNoMajority)
	for _, w := range a.waiting {
		w.From.Send(&Committed{Err: cause})
	}
	a.waiting = nil
}

// abandonProposal sends errors to the owners of a proposal whose outcome this process will not know.
func (a *Actor) abandonProposal() {
	batch, cause := a.inFlight, ErrOutcomeUnknown
	if !a.replication.stopping {
		cause = writeError(a.stopCause)
	}
	a.inFlight = nil
	for _, w := range batch {
		w.From.Send(&Committed{Err: cause})
	}
}
