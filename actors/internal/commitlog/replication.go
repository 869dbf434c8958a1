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

// Replication is what the journal actor keeps of a log that several nodes write (see SharedJournal). Every node gets all records in one order. A batch
// is one record there, a bundle, offered for the place behind the last record that was delivered:
//
//	owner      decides, and says how many messages about other nodes' records it had taken in
//	journal    packs what waits into a bundle with a token of its own; the writer offers it for one place
//	follower   delivered: the record of that place, of whatever node
//	journal    its own token: committed, in order. Another node's: messages about it to its owners; of the offer, what they had decided
//	           without it is void (ErrConflict), the rest is offered again behind the record
//	owner      applies the other node's record; after a conflict it decides the same commands again, and no caller hears of it
//
// So every rule that one owner decides holds on all nodes together. The log alone knows the outcome of a write: what Append returns only
// frees the writer. All records are applied in the order of the log, own ones too, so a cut at a record is the same state on every node.
// The follower waits while 64 records are not applied by all owners: nothing is dropped, and no mailbox grows. Leases belong to one node
// (engine.Leased.Node); an idle account gives them back. Without a majority nothing is decided; reads and what is leased go on.
type Replication struct {
	Journal       SharedJournal
	Token         *BundleToken
	Currencies    map[string]*mailbox.Ref
	SentRemoteSeq map[*mailbox.Ref]uint64 // messages about other nodes' records, by owner
	stopping      bool                    // the node stops
}

// ErrConflict tells an owner that its write was decided on a state that is no more, and is nowhere. No caller ever sees it: the owner
// decides again.
var ErrConflict = &engine.Error{
	Code: engine.CodeInternalError, Message: "an internal error", Cause: errors.New("another node changed the same meanwhile"),
}

// ErrNoMajority is why nothing can be changed while too few nodes reach each other.
var ErrNoMajority = errors.New("too few nodes of the cluster can reach each other")

// ErrOutcomeUnknown answers a change that was on its way when the majority was lost (A3).
var ErrOutcomeUnknown = &engine.Error{
	Code: engine.CodeInternalError, Message: "the change may or may not have been kept; it shows when the nodes reach each other again",
	Cause: ErrNoMajority,
}

// stale reports that a write was decided before a record of another node that its owner was told of.
func (s *Replication) stale(w *Write) bool { return w.RemoteSeq != s.SentRemoteSeq[w.From] }

// noMajority reports that a write can't be taken: there is no majority. A journal of one's own has one always.
func (s *Replication) noMajority() bool { return s != nil && Quorum{s.Journal}.Lost() }

// majorityLost tells the journal actor that a majority was lost or found again.
type majorityLost struct{ mailbox.OneWay }

// NodeStopping tells the journal actor that the node stops: what no majority can decide is given up.
type NodeStopping struct{ mailbox.OneWay }

// offerBundle hands the writer the writes in flight as one bundle.
func (j *Actor) offerBundle(records [][]byte) {
	j.Replication.Token.next()
	bundle, err := record.Encode(&record.Bundle{Node: j.Replication.Journal.Node(), Token: j.Replication.Token.value.Load(), Records: records})
	if err != nil {
		j.failStop(err)
		return
	}
	j.busy = true
	j.Writer.submit(job{expected: j.Last, records: [][]byte{bundle}})
}

// offerReturned frees the writer. What becomes of the offer is decided by what is delivered, before or after this.
func (j *Actor) offerReturned(m *written) {
	if m.err != nil && !errors.Is(m.err, ErrPosition) && j.cause == nil {
		j.failStop(fmt.Errorf("write to the journal: %w", m.err))
	}
}

// failStop stops the node.
func (j *Actor) failStop(err error) {
	j.stop(writeError(err))
	j.Fail(err)
}

// delivered takes the next record of the log.
func (j *Actor) delivered(m *Delivered) {
	defer m.Window.Release()
	switch {
	case j.cause != nil:
		return
	case m.err != nil:
		j.failStop(fmt.Errorf("record %d: %w", m.Sequence, m.err))
		return
	case m.Sequence != j.Last+1:
		j.failStop(fmt.Errorf("record %d was delivered after record %d", m.Sequence, j.Last))
		return
	}
	j.Last = m.Sequence
	defer j.Health.Sequence.Store(m.Sequence)
	j.countAppended(m.records, m.bytes)
	flight := j.inFlight
	j.inFlight = nil
	switch {
	case m.own && len(flight) == 0:
		j.failStop(fmt.Errorf("record %d: it was offered for another place", m.Sequence))
		return
	case m.own:
		j.commit(flight)
		return
	}
	if err := j.route(m); err != nil {
		j.inFlight = flight
		j.failStop(fmt.Errorf("record %d: %w", m.Sequence, err))
		return
	}
	j.revalidate(flight)
}

// route tells the owners of what another node has written. Shards come before the registrar, so that an account is there before
// anybody has a session of it.
func (j *Actor) route(m *Delivered) error {
	s := j.Replication
	for currency, events := range m.currencies {
		owner := s.Currencies[currency]
		if owner == nil {
			return fmt.Errorf("another node has rates of %q, which this one does not know; start it again", currency)
		}
		s.sendRemote(owner, &RemoteEvents[engine.Event]{Events: events, Window: m.Window.Retain()})
	}
	for i, events := range m.accounts {
		if len(events) > 0 {
			s.sendRemote(j.Shards[i], &RemoteEvents[account.Event]{Events: events, Window: m.Window.Retain()})
		}
	}
	if len(m.registry) > 0 {
		s.sendRemote(j.Registry, &RemoteEvents[any]{Events: m.registry, Window: m.Window.Retain()})
	}
	return nil
}

func (s *Replication) sendRemote(owner *mailbox.Ref, l mailbox.Message) {
	s.SentRemoteSeq[owner]++
	owner.Send(l)
}

// revalidate sorts the writes after another node's record: those that it made void go back to their owners, the others wait, those that
// have lost their place in front.
func (j *Actor) revalidate(flight []*Write) {
	if len(flight) > 0 {
		j.Health.noteDone()
		j.Health.noteQueued()
	}
	all := slices.Concat(flight, j.waiting)
	j.waiting = nil
	for _, w := range all {
		if j.Replication.stale(w) {
			w.From.Send(&Committed{Err: ErrConflict})
		} else {
			j.waiting = append(j.waiting, w)
		}
	}
}

// majorityLost acts on a majority that was lost: what waits is nowhere and is refused. What was offered the log decides; unless the node stops,
// which can't wait for that.
func (j *Actor) majorityLost() {
	switch {
	case !j.Replication.noMajority():
		return
	case j.Replication.stopping:
		j.stop(ErrOutcomeUnknown)
		return
	}
	j.Health.noteNoMajority()
	why := ReadOnly(ErrNoMajority)
	for _, w := range j.waiting {
		w.From.Send(&Committed{Err: why})
	}
	j.waiting = nil
}

// abandonOffer answers what was offered and will not be decided any more while this process lives.
func (j *Actor) abandonOffer() {
	flight, why := j.inFlight, ErrOutcomeUnknown
	if !j.Replication.stopping {
		why = writeError(j.cause)
	}
	j.inFlight = nil
	for _, w := range flight {
		w.From.Send(&Committed{Err: why})
	}
}
