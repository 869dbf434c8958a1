package actors

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

// write is what one owner wants to be kept. An owner has at most one under way.
type write struct {
	mailbox.OneWay
	from    *mailbox.Ref
	records [][]byte
	news    []news // told when the records are durable, before from hears of it
	heard   uint64 // messages about other nodes' records that from had taken in when it decided
}

// news is what another owner must know of a write: it belongs to every cut behind it, and to none before.
type news struct {
	to      *mailbox.Ref
	message mailbox.Message
}

// Reject tells the owner that the journal is no more.
func (w *write) Reject(why *engine.Error) { w.from.Send(&committed{err: why}) }

// committed tells an owner that its write is durable, or why it is not and never will be.
type committed struct {
	mailbox.OneWay
	err *engine.Error
}

// closing is asked by Close: answered when everything is written and the last snapshot is there.
type closing = mailbox.Question[struct{}, struct{}]

// journalActor is the only writer of the journal. It gathers what waits, hands one batch at a time to its
// writer and tells the owners, in order, when it is durable. It never touches the disk itself.
type journalActor struct {
	fail     func(error)
	logger   *slog.Logger
	vitals   *vitals
	writer   *writer
	owners   []*mailbox.Ref // of books; everybody who has a share in a cut
	shards   []*mailbox.Ref // of accounts; they and the registrar have one in a whole cut
	registry *mailbox.Ref
	snapshot snapshotPlan
	shared   *sharing // nil: nobody else writes the log

	last    uint64 // sequence of the last durable record
	waiting []*write
	flight  []*write // with the writer, or offered and not decided by the log
	busy    bool     // the writer works, on flight or on old segments
	cause   *engine.Error
	cuts    []*cutQuestion
	end     *closing
}

// Receive is one line for each message.
func (j *journalActor) Receive(l mailbox.Message) {
	switch m := l.(type) {
	case *write:
		j.accept(m)
	case *written:
		j.written(m)
	case *delivered:
		j.delivered(m)
	case *standing:
		j.stood()
	case *dropped:
		j.dropped(m)
	case *snapshotted:
		j.snapshotted(m)
	case *again:
		j.snapshot.again = j.snapshot.last < j.last
	case *cutQuestion:
		j.queueCut(m)
	case *closing:
		j.end = m
	case *leaving:
		j.shared.leaving = true
		j.stood()
	case *mailbox.Halt:
		j.stop(m.Why)
	}
	j.advance()
}

// accept queues a write, unless it is known to be void or without a chance.
func (j *journalActor) accept(w *write) {
	switch {
	case j.shared != nil && j.shared.stale(w):
		w.from.Send(&committed{err: errConflict})
	case j.shared.refuses():
		w.from.Send(&committed{err: readOnly(errNoMajority)})
	default:
		j.vitals.comes()
		j.waiting = append(j.waiting, w) // bounded: one of each owner
	}
}

// cutsMax bounds the callers that wait for a cut while a batch is being written.
const cutsMax = 64

func (j *journalActor) queueCut(q *cutQuestion) {
	if len(j.cuts) >= cutsMax {
		q.Reject(mailbox.ErrOverloaded)
		return
	}
	j.cuts = append(j.cuts, q)
}

// Fatal is mailbox.Actor: every message is about the order of records.
func (j *journalActor) Fatal(mailbox.Message) bool { return true }

// Abort answers what waits; what the writer has under way is answered when it comes back.
func (j *journalActor) Abort(why *engine.Error) { j.stop(why) }

// advance starts what can be started, unless the writer works: then it is called again. Where other nodes write as well, every delivery
// is a place for a cut, whatever the writer does.
func (j *journalActor) advance() {
	switch {
	case j.cause != nil:
		j.refuse()
	case j.busy && j.shared == nil:
	case j.snapshot.drop > 0 && !j.busy:
		j.busy = true
		j.writer.take(job{dropBefore: j.snapshot.drop})
		j.snapshot.drop = 0
	case j.snapshot.due() && j.snapshot.begin(j.last):
		j.share(&cut{sequence: j.last, whole: true, done: j.snapshot.keeper.take})
		j.advance()
	case len(j.cuts) > 0:
		j.answerCuts()
		j.advance()
	case j.busy || len(j.flight) > 0:
	case len(j.waiting) > 0:
		j.append()
	case j.end != nil && !j.snapshot.running:
		j.finish()
	}
}

// finish takes the last snapshot, once, then tells Close that everything is written.
func (j *journalActor) finish() {
	if j.snapshot.last < j.last && !j.snapshot.tried {
		j.snapshot.final, j.snapshot.tried = true, true
		j.advance()
		return
	}
	j.end.Reply(struct{}{}, nil)
	j.end = nil
}

// append hands the writer as many waiting writes as fit into one batch, in order. One always fits: its
// owner has seen to that.
func (j *journalActor) append() {
	var records [][]byte
	bytes, taken := 0, 0
	for _, w := range j.waiting {
		size := batchBytes(w.records)
		if taken > 0 && (bytes+size > batchBytesMax(j.shared != nil) || len(records)+len(w.records) > wal.BatchRecordsMax) {
			break
		}
		records, bytes, taken = append(records, w.records...), bytes+size, taken+1
	}
	j.flight = append(j.flight[:0], j.waiting[:taken]...)
	j.waiting = append(j.waiting[:0], j.waiting[taken:]...)
	j.vitals.takes(len(j.waiting) == 0)
	if j.shared != nil {
		j.offer(records)
		return
	}
	j.busy = true
	j.grows(len(records), bytes)
	j.writer.take(job{expected: j.last, records: records})
}

// grows counts what snapshots do not have yet.
func (j *journalActor) grows(records, bytes int) {
	j.snapshot.count(records, bytes)
	if j.snapshot.late() {
		j.vitals.late.Begin(j.vitals.clock())
	}
}

// recordOverheadBytes is what a batch needs for each record besides the record.
const recordOverheadBytes = 4

// batchBytesMax is how large a batch may be, counted as batchBytes does; one that is bundled is a single record.
func batchBytesMax(bundled bool) int {
	if bundled {
		return bundleRoom
	}
	return wal.BatchBytesMax
}

func batchBytes(records [][]byte) int {
	total := 0
	for _, record := range records {
		total += recordOverheadBytes + len(record)
	}
	return total
}

// written tells the owners how their batch came out.
func (j *journalActor) written(m *written) {
	j.busy = false
	if j.shared != nil {
		j.offered(m)
		return
	}
	flight := j.flight
	j.flight = nil
	if m.err == nil {
		j.last = m.last
		j.vitals.sequence.Store(m.last)
		j.commit(flight)
		return
	}
	j.vitals.ends()
	answer := outcome(m.err)
	if answer.Code == engine.CodeInternalError {
		j.stop(answer)
		j.fail(fmt.Errorf("write to the journal: %w", m.err))
	}
	for _, w := range flight {
		w.from.Send(&committed{err: answer})
	}
}

// commit tells the owners that their batch is durable.
func (j *journalActor) commit(batch []*write) {
	j.vitals.ends()
	for _, w := range batch {
		for _, n := range w.news {
			n.to.Send(n.message)
		}
		w.from.Send(&committed{})
	}
}

// outcome is what a caller is told of an error of Append.
func outcome(err error) *engine.Error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, wal.ErrNoSpace):
		return readOnly(err)
	case errors.Is(err, wal.ErrLimit):
		return tooLarge(err)
	}
	return &engine.Error{
		Code: engine.CodeInternalError, Message: "the change may or may not have been kept; it shows after the next start", Cause: err,
	}
}

// stop ends writing for good. What the writer has under way is answered when it comes back; what waits for the word of a log that others
// write too, at once.
func (j *journalActor) stop(why *engine.Error) {
	if j.cause == nil {
		j.cause = readOnly(why)
	}
	if j.shared != nil {
		j.giveUp()
	}
	j.refuse()
}

func (j *journalActor) refuse() {
	for len(j.waiting) > 0 {
		w := j.waiting[0]
		j.waiting = j.waiting[1:]
		w.from.Send(&committed{err: j.cause})
	}
	for len(j.cuts) > 0 {
		q := j.cuts[0]
		j.cuts = j.cuts[1:]
		q.Reject(j.cause)
	}
	if j.end != nil && (!j.busy || j.shared != nil) {
		j.end.Reply(struct{}{}, nil)
		j.end = nil
	}
}

// dropped is heard after the writer has let go of old records.
func (j *journalActor) dropped(m *dropped) {
	j.busy = false
	if m.err != nil {
		j.stop(outcome(m.err))
		j.fail(fmt.Errorf("drop old records: %w", m.err))
	}
}
