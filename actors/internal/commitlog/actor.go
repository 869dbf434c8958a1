package commitlog

import (
	"fmt"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/wal"
)

// Write is the records that one owner wants to make durable. An owner has at most one in flight.
type Write struct {
	mailbox.OneWay
	From          *mailbox.Ref
	Records       [][]byte
	Notifications []Notification // sent once the records are durable, before Committed
	RemoteSeq     uint64         // number of RemoteEvents that the owner had received when it decided
}

// Notification tells another owner of a write. It belongs to every snapshot after the write.
type Notification struct {
	To      *mailbox.Ref
	Message mailbox.Message
}

// Reject tells the owner that the journal has stopped.
func (w *Write) Reject(why *engine.Error) { w.From.Send(&Committed{Err: why}) }

// Committed tells an owner that its write is durable, or why it is not and never will be.
type Committed struct {
	mailbox.OneWay
	Err *engine.Error
}

// closing asks for the end of writing; the answer comes after the last snapshot.
type closing = mailbox.Question[struct{}, struct{}]

// Actor orders the writes of all owners. It gathers them into batches, has one batch at a time appended, and tells the
// owners in order.
type Actor struct {
	log         *Log
	currencies  []*mailbox.Ref // owners
	shards      []*mailbox.Ref // owners of accounts
	registry    *mailbox.Ref
	snapshot    snapshotPlan
	replication *replication // nil if no other node writes the log

	last          uint64 // sequence of the last durable record
	waiting       []*Write
	inFlight      []*Write // being appended, or offered to a shared journal
	busy          bool     // the writer has a job
	gathering     bool     // a gathered message was sent
	gathered      bool     // it has arrived: append the waiting writes
	cause         *engine.Error
	questions     []*snapshotQuestion
	closeQuestion *closing
}

// Receive implements mailbox.Actor.
func (a *Actor) Receive(l mailbox.Message) {
	switch m := l.(type) {
	case *Write:
		a.enqueue(m)
	case *gathered:
		a.gathering, a.gathered = false, true
	case *written:
		a.written(m)
	case *Delivered:
		a.delivered(m)
	case *majorityLost:
		a.majorityLost()
	case *dropped:
		a.dropped(m)
	case *snapshotWritten:
		a.snapshotWritten(m)
	case *retrySnapshot:
		a.snapshot.retry = a.snapshot.last < a.last
	case *snapshotQuestion:
		a.queueQuestion(m)
	case *closing:
		a.closeQuestion = m
	case *nodeStopping:
		a.replication.stopping = true
		a.majorityLost()
	case *mailbox.Halt:
		a.stop(m.Why)
	}
	a.advance()
}

// Fatal implements mailbox.Actor.
func (a *Actor) Fatal(mailbox.Message) bool { return true }

// Abort implements mailbox.Actor.
func (a *Actor) Abort(why *engine.Error) { a.stop(why) }

// enqueue queues a write, or rejects one that is outdated or cannot be decided.
func (a *Actor) enqueue(w *Write) {
	switch {
	case a.replication != nil && a.replication.stale(w):
		w.From.Send(&Committed{Err: ErrConflict})
	case a.noMajority():
		w.From.Send(&Committed{Err: ReadOnly(ErrNoMajority)})
	default:
		a.log.Health.noteQueued()
		a.waiting = append(a.waiting, w) // bounded: one of each owner
	}
}

// questionsMax bounds the callers that wait for a snapshot while a batch is being appended.
const questionsMax = 64

func (a *Actor) queueQuestion(q *snapshotQuestion) {
	if len(a.questions) >= questionsMax {
		q.Reject(mailbox.ErrOverloaded)
		return
	}
	a.questions = append(a.questions, q)
}

// advance starts the next step if the writer is idle. With a shared journal snapshots can also be taken while it is
// busy: then every delivered record ends a batch.
func (a *Actor) advance() {
	switch {
	case a.cause != nil:
		a.rejectAll()
	case a.busy && a.replication == nil:
	case a.snapshot.dropBefore > 0 && !a.busy:
		before := a.snapshot.dropBefore
		a.busy, a.snapshot.dropBefore = true, 0
		a.log.writer.submit(func() { a.log.drop(before) })
	case a.snapshot.due() && a.snapshot.begin(a.last):
		a.requestParts(&StateSnapshot{Sequence: a.last, Full: true, Done: a.log.WriteSnapshot})
		a.advance()
	case len(a.questions) > 0:
		a.answerQuestions()
		a.advance()
	case a.busy || len(a.inFlight) > 0:
	case len(a.waiting) > 0 && !a.gathered && a.log.Ref.Waiting() > 0:
		a.gather()
	case len(a.waiting) > 0:
		a.append()
	case a.closeQuestion != nil && !a.snapshot.running:
		a.finish()
	}
}

// gathered is a message of the Actor to itself. It arrives after the messages that are waiting now.
type gathered struct{ mailbox.OneWay }

// gather lets writes that are already in the mailbox join the next batch: one sync instead of two.
func (a *Actor) gather() {
	if !a.gathering {
		a.gathering = true
		a.log.Ref.Send(&gathered{})
	}
}

// finish takes a last snapshot, once, and answers the question of Finish.
func (a *Actor) finish() {
	if a.snapshot.last < a.last && !a.snapshot.finalTried {
		a.snapshot.final, a.snapshot.finalTried = true, true
		a.advance()
		return
	}
	a.closeQuestion.Reply(struct{}{}, nil)
	a.closeQuestion = nil
}

// append gives the writer as many waiting writes as fit into one batch. Each single write fits.
func (a *Actor) append() {
	a.gathered = false
	var records [][]byte
	bytes, taken := 0, 0
	for _, w := range a.waiting {
		size := BatchBytes(w.Records)
		if taken > 0 && (bytes+size > BatchBytesMax(a.replication != nil) || len(records)+len(w.Records) > wal.BatchRecordsMax) {
			break
		}
		records, bytes, taken = append(records, w.Records...), bytes+size, taken+1
	}
	a.inFlight = append(a.inFlight[:0], a.waiting[:taken]...)
	a.waiting = append(a.waiting[:0], a.waiting[taken:]...)
	a.log.Health.noteTaken(len(a.waiting) == 0)
	if a.replication != nil {
		a.offerBundle(records)
		return
	}
	a.countAppended(len(records), bytes)
	a.submitAppend(records)
}

func (a *Actor) submitAppend(records [][]byte) {
	a.busy = true
	expected := a.last
	a.log.writer.submit(func() { a.log.append(expected, records) })
}

// countAppended counts records that are in no snapshot yet.
func (a *Actor) countAppended(records, bytes int) {
	a.snapshot.count(records, bytes)
	if a.snapshot.late() {
		a.log.Health.late.Begin(a.log.Health.Clock())
	}
}

// written tells the owners the result of their batch.
func (a *Actor) written(m *written) {
	a.busy = false
	if a.replication != nil {
		a.offerReturned(m)
		return
	}
	batch := a.inFlight
	a.inFlight = nil
	if m.err == nil {
		a.last = m.last
		a.log.Health.Sequence.Store(m.last)
		a.commit(batch)
		return
	}
	a.log.Health.noteDone()
	answer := writeError(m.err)
	if answer.Code == engine.CodeInternalError {
		a.failStop(fmt.Errorf("write to the journal: %w", m.err))
	}
	for _, w := range batch {
		w.From.Send(&Committed{Err: answer})
	}
}

// commit tells the owners that their batch is durable.
func (a *Actor) commit(batch []*Write) {
	a.log.Health.noteDone()
	for _, w := range batch {
		for _, n := range w.Notifications {
			n.To.Send(n.Message)
		}
		w.From.Send(&Committed{})
	}
}

// failStop stops the node.
func (a *Actor) failStop(err error) {
	a.stop(writeError(err))
	a.log.Fail(err)
}

// stop ends writing. A batch that is being appended is answered when that returns, an offer to a shared journal at
// once.
func (a *Actor) stop(why *engine.Error) {
	if a.cause == nil {
		a.cause = ReadOnly(why)
	}
	if a.replication != nil {
		a.abandonOffer()
	}
	a.rejectAll()
}

func (a *Actor) rejectAll() {
	for len(a.waiting) > 0 {
		w := a.waiting[0]
		a.waiting = a.waiting[1:]
		w.From.Send(&Committed{Err: a.cause})
	}
	for len(a.questions) > 0 {
		q := a.questions[0]
		a.questions = a.questions[1:]
		q.Reject(a.cause)
	}
	if a.closeQuestion != nil && (!a.busy || a.replication != nil) {
		a.closeQuestion.Reply(struct{}{}, nil)
		a.closeQuestion = nil
	}
}

// dropped continues after old records were dropped.
func (a *Actor) dropped(m *dropped) {
	a.busy = false
	if m.err != nil {
		a.failStop(fmt.Errorf("drop old records: %w", m.err))
	}
}
