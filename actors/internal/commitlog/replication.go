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

// replication is the Actor's state for a SharedJournal. There, a batch of writes is a single record, a bundle.
//
//	owner      makes records while this node decides (Log.Decides), and sends a Write with the term
//	Actor      packs waiting writes of the term into a bundle with a new token; the writer appends it
//	follower   delivers the records of the cluster: this bundle or another one
//	Actor      this bundle: commits its writes
//	           another bundle: sends its events to their owners (RemoteEvents)
//
// An owner's rules therefore hold across all nodes: in one term only the leader decides, and it begins when its owners
// have applied everything from earlier terms. A write is committed when its record is delivered, not when Append
// returns. If this node ceases to lead meanwhile, the write's outcome is unknown, and a bundle that is delivered later
// counts as another node's. All nodes apply all records in the same order, so their snapshots at one sequence are
// equal. The follower pauses while ReplicationWindow records are delivered but not yet applied. All writes are rejected
// while the cluster has no majority or this node's disk is full. Meanwhile reads work, and accounts can spend quota
// already leased by this node.
type replication struct {
	currencies map[string]*mailbox.Ref
	stopping   bool // the node stops
}

// outdated reports whether this node must not decide any more in the term in which the records were made.
func (a *Actor) outdated(w *Write) bool {
	if a.replication == nil {
		return false
	}
	term, decides := a.log.Decides()
	return !decides || w.Term != term
}

// rejectOutdated rejects waiting writes of earlier terms.
func (a *Actor) rejectOutdated() {
	a.waiting = slices.DeleteFunc(a.waiting, func(w *Write) bool {
		outdated := a.outdated(w)
		if outdated {
			w.From.Send(&WriteResult{Err: ErrNotLeader})
		}
		return outdated
	})
}

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
	case m.err == nil || a.stopCause != nil:
	case errors.Is(m.err, wal.ErrNoSpace):
		a.rejectBatch(ReadOnly(m.err))
	case errors.Is(m.err, ErrNotLeader):
		a.rejectBatch(ErrNotLeader)
	case errors.Is(m.err, ErrOutcomeUnknown):
		a.rejectBatch(ErrOutcomeUnknown)
	default:
		a.failStop(fmt.Errorf("write to the journal: %w", m.err))
	}
}

// rejectBatch rejects the writes in flight, if they were not committed before.
func (a *Actor) rejectBatch(cause *engine.Error) {
	batch := a.inFlight
	a.inFlight = nil
	a.log.Health.noteDone()
	rejectWrites(batch, cause)
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
	if m.own && len(a.inFlight) > 0 {
		batch := a.inFlight
		a.inFlight = nil
		a.log.Health.Sequence.Store(m.Sequence) // before the callers get their answers
		a.commit(batch)
		return
	}
	if len(a.inFlight) > 0 { // another node leads: its records come first
		a.rejectBatch(ErrOutcomeUnknown)
	}
	a.rejectOutdated()
	if err := a.route(m); err != nil {
		a.failStop(fmt.Errorf("record %d: %w", m.Sequence, err))
	}
}

// route sends the events of a record to their owners. Shards come before the registrar, so that an account
// exists before its sessions.
func (a *Actor) route(m *Delivered) error {
	for currency, events := range m.currencies {
		owner := a.replication.currencies[currency]
		if owner == nil {
			return fmt.Errorf("another node has rates of currency %q, which this node does not know; restart this node", currency)
		}
		owner.Send(&RemoteEvents[engine.Event]{Events: events, Window: m.Window.Retain()})
	}
	for i, events := range m.accounts {
		if len(events) > 0 {
			a.shards[i].Send(&RemoteEvents[account.Event]{Events: events, Window: m.Window.Retain()})
		}
	}
	if len(m.registry) > 0 {
		a.registry.Send(&RemoteEvents[any]{Events: m.registry, Window: m.Window.Retain()})
	}
	return nil
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

// abandonProposal sends an error to the owners of the proposed bundle, because this process will not learn its outcome.
func (a *Actor) abandonProposal() {
	batch, cause := a.inFlight, ErrOutcomeUnknown
	if !a.replication.stopping {
		cause = writeError(a.stopCause)
	}
	a.inFlight = nil
	rejectWrites(batch, cause)
}
