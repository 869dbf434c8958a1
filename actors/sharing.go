package actors

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// sharing is what the journal actor keeps of a log that several nodes write (see Shared). Every node gets all records in one order. A batch
// is one record there, a bundle, offered for the place behind the last record that was delivered:
//
//	owner      decides, and says how many messages about other nodes' records it had taken in
//	journal    packs what waits into a bundle with a token of its own; the writer offers it for one place
//	follower   delivered: the record of that place, of whatever node
//	journal    its own token: committed, in order. Another node's: messages about it to its owners; of the offer, what they had decided
//	           without it is void (errConflict), the rest is offered again behind the record
//	owner      applies the other node's record; after a conflict it decides the same commands again, and no caller hears of it
//
// So every rule that one owner decides holds on all nodes together. The log alone knows the outcome of a write: what Append returns only
// frees the writer. All records are applied in the order of the log, own ones too, so a cut at a record is the same state on every node.
// The follower waits while 64 records are not applied by all owners: nothing is dropped, and no mailbox grows. Leases belong to one node
// (engine.Leased.Node); an idle account gives them back. Without a majority nothing is decided; reads and what is leased go on.
type sharing struct {
	journal Shared
	desk    *desk
	books   map[string]*mailbox.Ref
	told    map[*mailbox.Ref]uint64 // messages about other nodes' records, by owner
	leaving bool                    // the node stops
}

// errConflict tells an owner that its write was decided on a state that is no more, and is nowhere. No caller ever sees it: the owner
// decides again.
var errConflict = &engine.Error{
	Code: engine.CodeInternalError, Message: "an internal error", Cause: errors.New("another node changed the same meanwhile"),
}

// errNoMajority is why nothing can be changed while too few nodes reach each other.
var errNoMajority = errors.New("too few nodes of the cluster can reach each other")

// errUndecided answers a change that was on its way when the majority was lost (A3).
var errUndecided = &engine.Error{
	Code: engine.CodeInternalError, Message: "the change may or may not have been kept; it shows when the nodes reach each other again",
	Cause: errNoMajority,
}

// stale reports that a write was decided before a record of another node that its owner was told of.
func (s *sharing) stale(w *write) bool { return w.heard != s.told[w.from] }

// refuses reports that a write can't be taken: there is no majority. A journal of one's own has one always.
func (s *sharing) refuses() bool { return s != nil && quorum{s.journal}.lost() }

// standing tells the journal actor that a majority was lost or found again.
type standing struct{ mailbox.OneWay }

// leaving tells the journal actor that the node stops: what no majority can decide is given up.
type leaving struct{ mailbox.OneWay }

// offer hands the writer the writes in flight as one bundle.
func (j *journalActor) offer(records [][]byte) {
	j.shared.desk.next()
	bundle, err := record.Encode(&record.Bundle{Node: j.shared.journal.Node(), Token: j.shared.desk.token.Load(), Records: records})
	if err != nil {
		j.breakDown(err)
		return
	}
	j.busy = true
	j.writer.take(job{expected: j.last, records: [][]byte{bundle}})
}

// offered frees the writer. What becomes of the offer is decided by what is delivered, before or after this.
func (j *journalActor) offered(m *written) {
	if m.err != nil && !errors.Is(m.err, ErrPosition) && j.cause == nil {
		j.breakDown(fmt.Errorf("write to the journal: %w", m.err))
	}
}

// breakDown stops the node.
func (j *journalActor) breakDown(err error) {
	j.stop(outcome(err))
	j.fail(err)
}

// delivered takes the next record of the log.
func (j *journalActor) delivered(m *delivered) {
	defer m.credit.release()
	switch {
	case j.cause != nil:
		return
	case m.err != nil:
		j.breakDown(fmt.Errorf("record %d: %w", m.sequence, m.err))
		return
	case m.sequence != j.last+1:
		j.breakDown(fmt.Errorf("record %d was delivered after record %d", m.sequence, j.last))
		return
	}
	j.last = m.sequence
	defer j.vitals.sequence.Store(m.sequence)
	j.grows(m.records, m.bytes)
	flight := j.flight
	j.flight = nil
	switch {
	case m.own && len(flight) == 0:
		j.breakDown(fmt.Errorf("record %d: it was offered for another place", m.sequence))
		return
	case m.own:
		j.commit(flight)
		return
	}
	if err := j.route(m); err != nil {
		j.flight = flight
		j.breakDown(fmt.Errorf("record %d: %w", m.sequence, err))
		return
	}
	j.reconsider(flight)
}

// route tells the owners of what another node has written. Shards come before the registrar, so that an account is there before
// anybody has a session of it.
func (j *journalActor) route(m *delivered) error {
	s := j.shared
	for currency, events := range m.books {
		owner := s.books[currency]
		if owner == nil {
			return fmt.Errorf("another node has rates of %q, which this one does not know; start it again", currency)
		}
		s.tell(owner, &foreignEvents[engine.Event]{events: events, credit: m.credit.take()})
	}
	for i, events := range m.accounts {
		if len(events) > 0 {
			s.tell(j.shards[i], &foreignEvents[account.Event]{events: events, credit: m.credit.take()})
		}
	}
	if len(m.registry) > 0 {
		s.tell(j.registry, &foreignEvents[any]{events: m.registry, credit: m.credit.take()})
	}
	return nil
}

func (s *sharing) tell(owner *mailbox.Ref, l mailbox.Message) {
	s.told[owner]++
	owner.Send(l)
}

// reconsider sorts the writes after another node's record: those that it made void go back to their owners, the others wait, those that
// have lost their place in front.
func (j *journalActor) reconsider(flight []*write) {
	if len(flight) > 0 {
		j.vitals.ends()
		j.vitals.comes()
	}
	all := slices.Concat(flight, j.waiting)
	j.waiting = nil
	for _, w := range all {
		if j.shared.stale(w) {
			w.from.Send(&committed{err: errConflict})
		} else {
			j.waiting = append(j.waiting, w)
		}
	}
}

// stood acts on a majority that was lost: what waits is nowhere and is refused. What was offered the log decides; unless the node stops,
// which can't wait for that.
func (j *journalActor) stood() {
	switch {
	case !j.shared.refuses():
		return
	case j.shared.leaving:
		j.stop(errUndecided)
		return
	}
	j.vitals.lacks()
	why := readOnly(errNoMajority)
	for _, w := range j.waiting {
		w.from.Send(&committed{err: why})
	}
	j.waiting = nil
}

// giveUp answers what was offered and will not be decided any more while this process lives.
func (j *journalActor) giveUp() {
	flight, why := j.flight, errUndecided
	if !j.shared.leaving {
		why = outcome(j.cause)
	}
	j.flight = nil
	for _, w := range flight {
		w.from.Send(&committed{err: why})
	}
}
