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

// Sharing is what the journal actor keeps of a log that several nodes write (see Shared). Every node gets all records in one order. A batch
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
type Sharing struct {
	Journal Shared
	Desk    *Desk
	Books   map[string]*mailbox.Ref
	Told    map[*mailbox.Ref]uint64 // messages about other nodes' records, by owner
	leaving bool                    // the node stops
}

// ErrConflict tells an owner that its write was decided on a state that is no more, and is nowhere. No caller ever sees it: the owner
// decides again.
var ErrConflict = &engine.Error{
	Code: engine.CodeInternalError, Message: "an internal error", Cause: errors.New("another node changed the same meanwhile"),
}

// ErrNoMajority is why nothing can be changed while too few nodes reach each other.
var ErrNoMajority = errors.New("too few nodes of the cluster can reach each other")

// ErrUndecided answers a change that was on its way when the majority was lost (A3).
var ErrUndecided = &engine.Error{
	Code: engine.CodeInternalError, Message: "the change may or may not have been kept; it shows when the nodes reach each other again",
	Cause: ErrNoMajority,
}

// stale reports that a write was decided before a record of another node that its owner was told of.
func (s *Sharing) stale(w *Write) bool { return w.Heard != s.Told[w.From] }

// refuses reports that a write can't be taken: there is no majority. A journal of one's own has one always.
func (s *Sharing) refuses() bool { return s != nil && Quorum{s.Journal}.Lost() }

// standing tells the journal actor that a majority was lost or found again.
type standing struct{ mailbox.OneWay }

// Leaving tells the journal actor that the node stops: what no majority can decide is given up.
type Leaving struct{ mailbox.OneWay }

// offer hands the writer the writes in flight as one bundle.
func (j *Actor) offer(records [][]byte) {
	j.Shared.Desk.next()
	bundle, err := record.Encode(&record.Bundle{Node: j.Shared.Journal.Node(), Token: j.Shared.Desk.token.Load(), Records: records})
	if err != nil {
		j.breakDown(err)
		return
	}
	j.busy = true
	j.Writer.take(job{expected: j.Last, records: [][]byte{bundle}})
}

// offered frees the writer. What becomes of the offer is decided by what is delivered, before or after this.
func (j *Actor) offered(m *written) {
	if m.err != nil && !errors.Is(m.err, ErrPosition) && j.cause == nil {
		j.breakDown(fmt.Errorf("write to the journal: %w", m.err))
	}
}

// breakDown stops the node.
func (j *Actor) breakDown(err error) {
	j.stop(outcome(err))
	j.Fail(err)
}

// delivered takes the next record of the log.
func (j *Actor) delivered(m *Delivered) {
	defer m.Credit.Release()
	switch {
	case j.cause != nil:
		return
	case m.err != nil:
		j.breakDown(fmt.Errorf("record %d: %w", m.Sequence, m.err))
		return
	case m.Sequence != j.Last+1:
		j.breakDown(fmt.Errorf("record %d was delivered after record %d", m.Sequence, j.Last))
		return
	}
	j.Last = m.Sequence
	defer j.Vitals.Sequence.Store(m.Sequence)
	j.grows(m.records, m.bytes)
	flight := j.flight
	j.flight = nil
	switch {
	case m.own && len(flight) == 0:
		j.breakDown(fmt.Errorf("record %d: it was offered for another place", m.Sequence))
		return
	case m.own:
		j.commit(flight)
		return
	}
	if err := j.route(m); err != nil {
		j.flight = flight
		j.breakDown(fmt.Errorf("record %d: %w", m.Sequence, err))
		return
	}
	j.reconsider(flight)
}

// route tells the owners of what another node has written. Shards come before the registrar, so that an account is there before
// anybody has a session of it.
func (j *Actor) route(m *Delivered) error {
	s := j.Shared
	for currency, events := range m.books {
		owner := s.Books[currency]
		if owner == nil {
			return fmt.Errorf("another node has rates of %q, which this one does not know; start it again", currency)
		}
		s.tell(owner, &ForeignEvents[engine.Event]{Events: events, Credit: m.Credit.Take()})
	}
	for i, events := range m.accounts {
		if len(events) > 0 {
			s.tell(j.Shards[i], &ForeignEvents[account.Event]{Events: events, Credit: m.Credit.Take()})
		}
	}
	if len(m.registry) > 0 {
		s.tell(j.Registry, &ForeignEvents[any]{Events: m.registry, Credit: m.Credit.Take()})
	}
	return nil
}

func (s *Sharing) tell(owner *mailbox.Ref, l mailbox.Message) {
	s.Told[owner]++
	owner.Send(l)
}

// reconsider sorts the writes after another node's record: those that it made void go back to their owners, the others wait, those that
// have lost their place in front.
func (j *Actor) reconsider(flight []*Write) {
	if len(flight) > 0 {
		j.Vitals.ends()
		j.Vitals.comes()
	}
	all := slices.Concat(flight, j.waiting)
	j.waiting = nil
	for _, w := range all {
		if j.Shared.stale(w) {
			w.From.Send(&Committed{Err: ErrConflict})
		} else {
			j.waiting = append(j.waiting, w)
		}
	}
}

// stood acts on a majority that was lost: what waits is nowhere and is refused. What was offered the log decides; unless the node stops,
// which can't wait for that.
func (j *Actor) stood() {
	switch {
	case !j.Shared.refuses():
		return
	case j.Shared.leaving:
		j.stop(ErrUndecided)
		return
	}
	j.Vitals.lacks()
	why := ReadOnly(ErrNoMajority)
	for _, w := range j.waiting {
		w.From.Send(&Committed{Err: why})
	}
	j.waiting = nil
}

// giveUp answers what was offered and will not be decided any more while this process lives.
func (j *Actor) giveUp() {
	flight, why := j.flight, ErrUndecided
	if !j.Shared.leaving {
		why = outcome(j.cause)
	}
	j.flight = nil
	for _, w := range flight {
		w.From.Send(&Committed{Err: why})
	}
}
