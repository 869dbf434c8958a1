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

// replication is the Actor's state for a log that several nodes write. A batch is one record there, a bundle, offered
// for the place after the last delivered record:
//
//	owner      decides; its Write says how many RemoteEvents it had received
//	Actor      packs waiting writes into a bundle with a new token; the writer offers it for one place
//	follower   delivers the record that took the place, of any node
//	Actor      own token: commits the writes. Another node's record: sends RemoteEvents to its owners, rejects writes
//	           that were decided without them (ErrConflict) and offers the others again
//	owner      applies the events; after a conflict it decides the same commands again, unnoticed by callers
//
// So every rule that one owner enforces holds for all nodes together. Only the log decides the outcome of a write;
// the return of Append merely frees the writer. All nodes apply all records in log order, so a snapshot at a record
// is the same everywhere. The follower waits while ReplicationWindow records are not applied by all owners. A lease
// belongs to one node. Without a majority nothing is decided; reads and leased quota remain.
type replication struct {
	currencies map[string]*mailbox.Ref
	sent       map[*mailbox.Ref]uint64 // RemoteEvents by owner
	stopping   bool                    // the node stops
}

// stale reports that a write was decided before RemoteEvents that were sent to its owner.
func (s *replication) stale(w *Write) bool { return w.RemoteSeq != s.sent[w.From] }

// noMajority reports that no write can be decided.
func (a *Actor) noMajority() bool { return Quorum{a.log.Shared}.Lost() }

// majorityLost tells the Actor that there is no majority.
type majorityLost struct{ mailbox.OneWay }

// nodeStopping tells the Actor that the node stops: undecided offers are given up.
type nodeStopping struct{ mailbox.OneWay }

// offerBundle offers the writes in flight as one bundle.
func (a *Actor) offerBundle(records [][]byte) {
	bundle, err := record.Encode(&record.Bundle{Node: a.log.Shared.Node(), Token: a.log.token.Add(1), Records: records})
	if err != nil {
		a.failStop(err)
		return
	}
	a.submitAppend([][]byte{bundle})
}

// offerReturned frees the writer. Delivered records decide the outcome of the offer, before or after this.
func (a *Actor) offerReturned(m *written) {
	if m.err != nil && !errors.Is(m.err, ErrPosition) && a.cause == nil {
		a.failStop(fmt.Errorf("write to the journal: %w", m.err))
	}
}

// delivered handles the next record of the log.
func (a *Actor) delivered(m *Delivered) {
	defer m.Window.Release()
	switch {
	case a.cause != nil:
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
	s := a.replication
	for currency, events := range m.currencies {
		owner := s.currencies[currency]
		if owner == nil {
			return fmt.Errorf("another node has rates of %q, which this one does not know; restart this node", currency)
		}
		s.sendRemote(owner, &RemoteEvents[engine.Event]{Events: events, Window: m.Window.Retain()})
	}
	for i, events := range m.accounts {
		if len(events) > 0 {
			s.sendRemote(a.shards[i], &RemoteEvents[account.Event]{Events: events, Window: m.Window.Retain()})
		}
	}
	if len(m.registry) > 0 {
		s.sendRemote(a.registry, &RemoteEvents[any]{Events: m.registry, Window: m.Window.Retain()})
	}
	return nil
}

func (s *replication) sendRemote(owner *mailbox.Ref, m mailbox.Message) {
	s.sent[owner]++
	owner.Send(m)
}

// revalidate rejects the writes that another node's record made stale, and queues the others again in their order.
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

// majorityLost rejects waiting writes. An offer stays open, unless the node stops.
func (a *Actor) majorityLost() {
	switch {
	case !a.noMajority():
		return
	case a.replication.stopping:
		a.stop(ErrOutcomeUnknown)
		return
	}
	a.log.Health.noteNoMajority()
	why := ReadOnly(ErrNoMajority)
	for _, w := range a.waiting {
		w.From.Send(&Committed{Err: why})
	}
	a.waiting = nil
}

// abandonOffer answers the writes of an offer whose outcome this process will not learn.
func (a *Actor) abandonOffer() {
	batch, why := a.inFlight, ErrOutcomeUnknown
	if !a.replication.stopping {
		why = writeError(a.cause)
	}
	a.inFlight = nil
	for _, w := range batch {
		w.From.Send(&Committed{Err: why})
	}
}
