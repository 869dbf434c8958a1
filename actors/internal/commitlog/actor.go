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
	cause         *engine.Error
	questions     []*snapshotQuestion
	closeQuestion *closing
}

// Receive implements mailbox.Actor.
func (j *Actor) Receive(l mailbox.Message) {
	switch m := l.(type) {
	case *Write:
		j.enqueue(m)
	case *written:
		j.written(m)
	case *Delivered:
		j.delivered(m)
	case *majorityLost:
		j.majorityLost()
	case *dropped:
		j.dropped(m)
	case *snapshotWritten:
		j.snapshotWritten(m)
	case *retrySnapshot:
		j.snapshot.retry = j.snapshot.last < j.last
	case *snapshotQuestion:
		j.queueQuestion(m)
	case *closing:
		j.closeQuestion = m
	case *nodeStopping:
		j.replication.stopping = true
		j.majorityLost()
	case *mailbox.Halt:
		j.stop(m.Why)
	}
	j.advance()
}

// Fatal implements mailbox.Actor.
func (j *Actor) Fatal(mailbox.Message) bool { return true }

// Abort implements mailbox.Actor.
func (j *Actor) Abort(why *engine.Error) { j.stop(why) }

// enqueue queues a write, or rejects one that is outdated or cannot be decided.
func (j *Actor) enqueue(w *Write) {
	switch {
	case j.replication != nil && j.replication.stale(w):
		w.From.Send(&Committed{Err: ErrConflict})
	case j.noMajority():
		w.From.Send(&Committed{Err: ReadOnly(ErrNoMajority)})
	default:
		j.log.Health.noteQueued()
		j.waiting = append(j.waiting, w) // bounded: one of each owner
	}
}

// questionsMax bounds the callers that wait for a snapshot while a batch is being appended.
const questionsMax = 64

func (j *Actor) queueQuestion(q *snapshotQuestion) {
	if len(j.questions) >= questionsMax {
		q.Reject(mailbox.ErrOverloaded)
		return
	}
	j.questions = append(j.questions, q)
}

// advance starts the next step if the writer is idle. With a shared journal snapshots can also be taken while it is
// busy: then every delivered record ends a batch.
func (j *Actor) advance() {
	switch {
	case j.cause != nil:
		j.rejectAll()
	case j.busy && j.replication == nil:
	case j.snapshot.dropBefore > 0 && !j.busy:
		before := j.snapshot.dropBefore
		j.busy, j.snapshot.dropBefore = true, 0
		j.log.writer.submit(func() { j.log.drop(before) })
	case j.snapshot.due() && j.snapshot.begin(j.last):
		j.requestParts(&StateSnapshot{Sequence: j.last, Full: true, Done: j.log.WriteSnapshot})
		j.advance()
	case len(j.questions) > 0:
		j.answerQuestions()
		j.advance()
	case j.busy || len(j.inFlight) > 0:
	case len(j.waiting) > 0:
		j.append()
	case j.closeQuestion != nil && !j.snapshot.running:
		j.finish()
	}
}

// finish takes a last snapshot, once, and answers the question of Finish.
func (j *Actor) finish() {
	if j.snapshot.last < j.last && !j.snapshot.finalTried {
		j.snapshot.final, j.snapshot.finalTried = true, true
		j.advance()
		return
	}
	j.closeQuestion.Reply(struct{}{}, nil)
	j.closeQuestion = nil
}

// append gives the writer as many waiting writes as fit into one batch. Each single write fits.
func (j *Actor) append() {
	var records [][]byte
	bytes, taken := 0, 0
	for _, w := range j.waiting {
		size := BatchBytes(w.Records)
		if taken > 0 && (bytes+size > BatchBytesMax(j.replication != nil) || len(records)+len(w.Records) > wal.BatchRecordsMax) {
			break
		}
		records, bytes, taken = append(records, w.Records...), bytes+size, taken+1
	}
	j.inFlight = append(j.inFlight[:0], j.waiting[:taken]...)
	j.waiting = append(j.waiting[:0], j.waiting[taken:]...)
	j.log.Health.noteTaken(len(j.waiting) == 0)
	if j.replication != nil {
		j.offerBundle(records)
		return
	}
	j.countAppended(len(records), bytes)
	j.submitAppend(records)
}

func (j *Actor) submitAppend(records [][]byte) {
	j.busy = true
	expected := j.last
	j.log.writer.submit(func() { j.log.append(expected, records) })
}

// countAppended counts records that are in no snapshot yet.
func (j *Actor) countAppended(records, bytes int) {
	j.snapshot.count(records, bytes)
	if j.snapshot.late() {
		j.log.Health.late.Begin(j.log.Health.Clock())
	}
}

// written tells the owners the result of their batch.
func (j *Actor) written(m *written) {
	j.busy = false
	if j.replication != nil {
		j.offerReturned(m)
		return
	}
	batch := j.inFlight
	j.inFlight = nil
	if m.err == nil {
		j.last = m.last
		j.log.Health.Sequence.Store(m.last)
		j.commit(batch)
		return
	}
	j.log.Health.noteDone()
	answer := writeError(m.err)
	if answer.Code == engine.CodeInternalError {
		j.failStop(fmt.Errorf("write to the journal: %w", m.err))
	}
	for _, w := range batch {
		w.From.Send(&Committed{Err: answer})
	}
}

// commit tells the owners that their batch is durable.
func (j *Actor) commit(batch []*Write) {
	j.log.Health.noteDone()
	for _, w := range batch {
		for _, n := range w.Notifications {
			n.To.Send(n.Message)
		}
		w.From.Send(&Committed{})
	}
}

// failStop stops the node.
func (j *Actor) failStop(err error) {
	j.stop(writeError(err))
	j.log.Fail(err)
}

// stop ends writing. A batch that is being appended is answered when that returns, an offer to a shared journal at
// once.
func (j *Actor) stop(why *engine.Error) {
	if j.cause == nil {
		j.cause = ReadOnly(why)
	}
	if j.replication != nil {
		j.abandonOffer()
	}
	j.rejectAll()
}

func (j *Actor) rejectAll() {
	for len(j.waiting) > 0 {
		w := j.waiting[0]
		j.waiting = j.waiting[1:]
		w.From.Send(&Committed{Err: j.cause})
	}
	for len(j.questions) > 0 {
		q := j.questions[0]
		j.questions = j.questions[1:]
		q.Reject(j.cause)
	}
	if j.closeQuestion != nil && (!j.busy || j.replication != nil) {
		j.closeQuestion.Reply(struct{}{}, nil)
		j.closeQuestion = nil
	}
}

// dropped continues after old records were dropped.
func (j *Actor) dropped(m *dropped) {
	j.busy = false
	if m.err != nil {
		j.failStop(fmt.Errorf("drop old records: %w", m.err))
	}
}
