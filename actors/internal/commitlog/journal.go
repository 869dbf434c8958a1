package commitlog

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/wal"
)

// Journal keeps records durably and in order. The local one is a log in a directory; nothing but this
// interface knows that, so that a replicated stream can take its place. Append, DropBefore and Read are
// called by one goroutine at a time, WriteSnapshot by another one, perhaps meanwhile.
type Journal interface {
	// Last is the sequence of the newest durable record, 0 when there is none. The first record has 1.
	Last() uint64
	// Append makes the records durable behind the record with sequence expected: all of them or none. When
	// it returns without an error no crash takes them back. Errors: ErrPosition when the journal does not
	// end there; wal.ErrNoSpace and wal.ErrLimit when nothing was written and the journal can go on; after
	// any other one nothing more is appended, and what was kept shows when it is opened again.
	Append(expected uint64, records [][]byte) (last uint64, err error)
	// Read visits the records from a sequence on, in order. A record is valid only during the call.
	Read(from uint64, visit func(sequence uint64, record []byte) error) error
	// Snapshot is the newest whole snapshot: the state after record sequence. ok is false without one. The
	// caller closes it.
	Snapshot() (sequence uint64, r io.ReadCloser, ok bool, err error)
	// WriteSnapshot keeps what write produces as the state after record sequence.
	WriteSnapshot(sequence uint64, write func(io.Writer) error) error
	// DropBefore lets go of records that no kept snapshot needs any more.
	DropBefore(sequence uint64) error
	// Close lets go of the journal. Everything appended is durable already.
	Close() error
}

// Write is what one owner wants to be kept. An owner has at most one under way.
type Write struct {
	mailbox.OneWay
	From          *mailbox.Ref
	Records       [][]byte
	Notifications []Notification // told when the records are durable, before from hears of it
	RemoteSeq     uint64         // messages about other nodes' records that from had taken in when it decided
}

// Notification is what another owner must know of a write: it belongs to every cut behind it, and to none before.
type Notification struct {
	To      *mailbox.Ref
	Message mailbox.Message
}

// Reject tells the owner that the journal is no more.
func (w *Write) Reject(why *engine.Error) { w.From.Send(&Committed{Err: why}) }

// Committed tells an owner that its write is durable, or why it is not and never will be.
type Committed struct {
	mailbox.OneWay
	Err *engine.Error
}

// closing is asked by Close: answered when everything is written and the last snapshot is there.
type closing = mailbox.Question[struct{}, struct{}]

// Actor is the only writer of the journal. It gathers what waits, hands one batch at a time to its
// writer and tells the owners, in order, when it is durable. It never touches the disk itself.
type Actor struct {
	Fail        func(error)
	Logger      *slog.Logger
	Health      *Health
	Writer      *Writer
	Currencies  []*mailbox.Ref // of books; everybody who has a share in a cut
	Shards      []*mailbox.Ref // of accounts; they and the registrar have one in a whole cut
	Registry    *mailbox.Ref
	Snapshot    SnapshotPlan
	Replication *Replication // nil: nobody else writes the log

	Last          uint64 // sequence of the last durable record
	waiting       []*Write
	inFlight      []*Write // with the writer, or offered and not decided by the log
	busy          bool     // the writer works, on flight or on old segments
	cause         *engine.Error
	questions     []*snapshotQuestion
	closeQuestion *closing
}

// Receive is one line for each message.
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
		j.Snapshot.retry = j.Snapshot.Last < j.Last
	case *snapshotQuestion:
		j.queueQuestion(m)
	case *closing:
		j.closeQuestion = m
	case *NodeStopping:
		j.Replication.stopping = true
		j.majorityLost()
	case *mailbox.Halt:
		j.stop(m.Why)
	}
	j.advance()
}

// enqueue queues a write, unless it is known to be void or without a chance.
func (j *Actor) enqueue(w *Write) {
	switch {
	case j.Replication != nil && j.Replication.stale(w):
		w.From.Send(&Committed{Err: ErrConflict})
	case j.Replication.noMajority():
		w.From.Send(&Committed{Err: ReadOnly(ErrNoMajority)})
	default:
		j.Health.noteQueued()
		j.waiting = append(j.waiting, w) // bounded: one of each owner
	}
}

// questionsMax bounds the callers that wait for a cut while a batch is being written.
const questionsMax = 64

func (j *Actor) queueQuestion(q *snapshotQuestion) {
	if len(j.questions) >= questionsMax {
		q.Reject(mailbox.ErrOverloaded)
		return
	}
	j.questions = append(j.questions, q)
}

// Fatal is mailbox.Actor: every message is about the order of records.
func (j *Actor) Fatal(mailbox.Message) bool { return true }

// Abort answers what waits; what the writer has under way is answered when it comes back.
func (j *Actor) Abort(why *engine.Error) { j.stop(why) }

// advance starts what can be started, unless the writer works: then it is called again. Where other nodes write as well, every delivery
// is a place for a cut, whatever the writer does.
func (j *Actor) advance() {
	switch {
	case j.cause != nil:
		j.rejectAll()
	case j.busy && j.Replication == nil:
	case j.Snapshot.dropBefore > 0 && !j.busy:
		j.busy = true
		j.Writer.submit(job{dropBefore: j.Snapshot.dropBefore})
		j.Snapshot.dropBefore = 0
	case j.Snapshot.due() && j.Snapshot.begin(j.Last):
		j.requestParts(&StateSnapshot{Sequence: j.Last, Full: true, Done: j.Snapshot.Writer.Submit})
		j.advance()
	case len(j.questions) > 0:
		j.answerQuestions()
		j.advance()
	case j.busy || len(j.inFlight) > 0:
	case len(j.waiting) > 0:
		j.append()
	case j.closeQuestion != nil && !j.Snapshot.Running:
		j.finish()
	}
}

// finish takes the last snapshot, once, then tells Close that everything is written.
func (j *Actor) finish() {
	if j.Snapshot.Last < j.Last && !j.Snapshot.finalTried {
		j.Snapshot.final, j.Snapshot.finalTried = true, true
		j.advance()
		return
	}
	j.closeQuestion.Reply(struct{}{}, nil)
	j.closeQuestion = nil
}

// append hands the writer as many waiting writes as fit into one batch, in order. One always fits: its
// owner has seen to that.
func (j *Actor) append() {
	var records [][]byte
	bytes, taken := 0, 0
	for _, w := range j.waiting {
		size := BatchBytes(w.Records)
		if taken > 0 && (bytes+size > BatchBytesMax(j.Replication != nil) || len(records)+len(w.Records) > wal.BatchRecordsMax) {
			break
		}
		records, bytes, taken = append(records, w.Records...), bytes+size, taken+1
	}
	j.inFlight = append(j.inFlight[:0], j.waiting[:taken]...)
	j.waiting = append(j.waiting[:0], j.waiting[taken:]...)
	j.Health.noteTaken(len(j.waiting) == 0)
	if j.Replication != nil {
		j.offerBundle(records)
		return
	}
	j.busy = true
	j.countAppended(len(records), bytes)
	j.Writer.submit(job{expected: j.Last, records: records})
}

// countAppended counts what snapshots do not have yet.
func (j *Actor) countAppended(records, bytes int) {
	j.Snapshot.Count(records, bytes)
	if j.Snapshot.Late() {
		j.Health.late.Begin(j.Health.Clock())
	}
}

// recordOverheadBytes is what a batch needs for each record besides the record.
const recordOverheadBytes = 4

// BatchBytesMax is how large a batch may be, counted as BatchBytes does; one that is bundled is a single record.
func BatchBytesMax(bundled bool) int {
	if bundled {
		return BundlePayloadMax
	}
	return wal.BatchBytesMax
}

// BatchBytes is how large records are in a batch.
func BatchBytes(records [][]byte) int {
	total := 0
	for _, record := range records {
		total += recordOverheadBytes + len(record)
	}
	return total
}

// writtenBytes tells the owners how their batch came out.
func (j *Actor) written(m *written) {
	j.busy = false
	if j.Replication != nil {
		j.offerReturned(m)
		return
	}
	flight := j.inFlight
	j.inFlight = nil
	if m.err == nil {
		j.Last = m.last
		j.Health.Sequence.Store(m.last)
		j.commit(flight)
		return
	}
	j.Health.noteDone()
	answer := writeError(m.err)
	if answer.Code == engine.CodeInternalError {
		j.stop(answer)
		j.Fail(fmt.Errorf("write to the journal: %w", m.err))
	}
	for _, w := range flight {
		w.From.Send(&Committed{Err: answer})
	}
}

// commit tells the owners that their batch is durable.
func (j *Actor) commit(batch []*Write) {
	j.Health.noteDone()
	for _, w := range batch {
		for _, n := range w.Notifications {
			n.To.Send(n.Message)
		}
		w.From.Send(&Committed{})
	}
}

// writeError is what a caller is told of an error of Append.
func writeError(err error) *engine.Error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, wal.ErrNoSpace):
		return ReadOnly(err)
	case errors.Is(err, wal.ErrLimit):
		return TooLarge(err)
	}
	return &engine.Error{
		Code: engine.CodeInternalError, Message: "the change may or may not have been kept; it shows after the next start", Cause: err,
	}
}

// stop ends writing for good. What the writer has under way is answered when it comes back; what waits for the word of a log that others
// write too, at once.
func (j *Actor) stop(why *engine.Error) {
	if j.cause == nil {
		j.cause = ReadOnly(why)
	}
	if j.Replication != nil {
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
	if j.closeQuestion != nil && (!j.busy || j.Replication != nil) {
		j.closeQuestion.Reply(struct{}{}, nil)
		j.closeQuestion = nil
	}
}

// dropped is heard after the writer has let go of old records.
func (j *Actor) dropped(m *dropped) {
	j.busy = false
	if m.err != nil {
		j.stop(writeError(m.err))
		j.Fail(fmt.Errorf("drop old records: %w", m.err))
	}
}
