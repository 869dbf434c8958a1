package commitlog

import (
	"fmt"
	"runtime"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/wal"
)

// Write asks the Actor to make records of an owner (actor with state) durable. Each owner limits its writes in flight.
// Their results come in any order if one of them fails.
type Write struct {
	mailbox.OneWay
	From          *mailbox.Ref // the owner
	Records       [][]byte
	Notifications []Notification // sent to other owners when the records are durable, before From gets WriteResult
	Term          uint64         // result of Log.Decides before the owner made the records
}

// Notification informs another owner of a write. A snapshot that includes the write also includes the other owner's
// reaction to the notification.
type Notification struct {
	To      *mailbox.Ref
	Message mailbox.Message
}

// Reject implements mailbox.Message. It also rejects a write for the Actor.
func (w *Write) Reject(cause *engine.Error) { w.From.Send(&WriteResult{Write: w, Err: cause}) }

// WriteResult tells the owner that its Write is done. If Err is nil, the records are durable.
type WriteResult struct {
	mailbox.OneWay
	Write *Write
	Err   *engine.Error
}

// finishRequest asks the Actor to write all queued records and take a final snapshot. Then the Actor replies.
type finishRequest = mailbox.Request[struct{}, struct{}]

// Actor orders the writes of all owners and collects them in batches. The writer goroutine (Log.writer) appends one
// batch at a time. Then the Actor sends WriteResult to the owners, in the order of their writes.
type Actor struct {
	log         *Log
	currencies  []*mailbox.Ref
	shards      []*mailbox.Ref // actors of the accounts; each keeps a part of them
	registry    *mailbox.Ref
	snapshot    snapshotPlan
	replication *replication // nil if the journal is not a SharedJournal

	last          uint64        // sequence of the newest durable record
	waiting       []*Write      // not in a batch yet
	inFlight      []*Write      // the batch being appended, or proposed to a SharedJournal
	writerBusy    bool          // the writer goroutine still works on a job
	gathered      bool          // the message gathered has arrived: the next batch may start
	stopCause     *engine.Error // not nil: the error for all writes
	finishRequest *finishRequest
}

// Receive implements mailbox.Actor.
func (a *Actor) Receive(msg mailbox.Message) {
	switch m := msg.(type) {
	case *Write:
		a.enqueue(m)
	case *gathered:
		a.writerBusy, a.gathered = false, true
	case *appendResult:
		a.appended(m)
	case *Delivered:
		a.delivered(m)
	case *writesBlocked:
		a.writesBlocked()
	case *leadershipLost:
		a.replication.lost = m.term
	case *dropResult:
		a.dropped(m)
	case *snapshotResult:
		a.snapshotWritten(m)
	case *retrySnapshot:
		a.snapshot.retry = a.snapshot.last < a.last
	case *StateRequest:
		a.answerState(m)
	case *finishRequest:
		a.finishRequest = m
	case *nodeStopping:
		a.replication.stopping = true
		a.writesBlocked()
	case *mailbox.NodeFailed:
		a.stop(m.Err)
	}
	a.advance()
	a.log.Health.noteWaiting(len(a.waiting) + len(a.inFlight))
}

// FailsNode implements mailbox.Actor.
func (a *Actor) FailsNode(mailbox.Message) bool { return true }

// RejectAll implements mailbox.Actor.
func (a *Actor) RejectAll(cause *engine.Error) { a.stop(cause) }

// enqueue queues a write. It rejects a write that this node must not decide any more, or that cannot become durable
// now.
func (a *Actor) enqueue(w *Write) {
	problem := Majority{a.log.Shared}.writeProblem()
	switch {
	case problem != nil:
		w.Reject(ReadOnly(problem))
	case a.outdated(w):
		w.Reject(ErrNotLeader)
	default:
		a.waiting = append(a.waiting, w) // bounded: each owner limits its writes in flight
	}
}

// advance starts the next step.
func (a *Actor) advance() {
	switch {
	case a.stopCause != nil:
		a.rejectAll()
	case a.proposalLost():
		a.rejectBatch(ErrOutcomeUnknown)
		a.advance()
	case a.snapshot.dropBefore > 0 && !a.writerBusy:
		before := a.snapshot.dropBefore
		a.writerBusy, a.snapshot.dropBefore = true, 0
		a.log.write(func() { a.log.drop(before) })
	case a.snapshot.due() && a.snapshot.begin(a.last):
		a.takeSnapshot(a.log.startSnapshot)
		a.advance()
	case a.writerBusy || len(a.inFlight) > 0:
	case len(a.waiting) > 0 && !a.gathered:
		a.gather()
	case len(a.waiting) > 0:
		a.append()
	case a.finishRequest != nil && !a.snapshot.running:
		a.finish()
	}
}

// gathered is the writer's answer to gather.
type gathered struct{ mailbox.OneWay }

// gather gives busy owners, such as those of the previous batch, time to send their writes before the next batch
// starts. Otherwise these would miss the batch, and there would be twice as many batches and syncs. The writer sends
// gathered back as a one-way message, so the dispatcher runs the Actor after all owners already in its queue.
func (a *Actor) gather() {
	a.writerBusy = true
	a.log.write(func() {
		runtime.Gosched() // on a single processor the owners would otherwise not run
		a.log.Ref.Send(&gathered{})
	})
}

// finish tries once to take a final snapshot. After that it replies to Log.Finish.
func (a *Actor) finish() {
	if !a.snapshot.finalTried && a.snapshot.begin(a.last) {
		a.snapshot.finalTried = true
		a.takeSnapshot(a.log.startSnapshot)
		return
	}
	a.finishRequest.Reply(struct{}{}, nil)
	a.finishRequest = nil
}

// append submits a batch to the writer: as many waiting writes as fit, at least one.
func (a *Actor) append() {
	a.gathered = false
	if a.rejectOutdated(); len(a.waiting) == 0 {
		return
	}
	var records [][]byte
	bytes, count := 0, 0
	for _, w := range a.waiting {
		size := BatchBytes(w.Records)
		if count > 0 && (bytes+size > BatchBytesMax(a.replication != nil) || len(records)+len(w.Records) > wal.BatchRecordsMax) {
			break
		}
		records, bytes, count = append(records, w.Records...), bytes+size, count+1
	}
	a.inFlight = append(a.inFlight[:0], a.waiting[:count]...)
	a.waiting = append(a.waiting[:0], a.waiting[count:]...)
	if a.replication != nil {
		a.propose(records)
		return
	}
	a.countAppended(len(records), bytes)
	a.submitAppend(records)
}

func (a *Actor) submitAppend(records [][]byte) {
	a.writerBusy = true
	expected := a.last
	if a.replication != nil {
		expected = a.inFlight[0].Term
	}
	a.log.write(func() { a.log.append(expected, records) })
}

// countAppended counts records for the next snapshot, and reports a late snapshot to Health.
func (a *Actor) countAppended(records, bytes int) {
	a.snapshot.count(records, bytes)
	if a.snapshot.late() {
		a.log.Health.snapshotLate.Begin(a.log.Health.Clock())
	}
}

// appended handles the result of Journal.Append. For a local journal it sends the result to the owners of the batch.
func (a *Actor) appended(m *appendResult) {
	a.writerBusy = false
	if a.replication != nil {
		a.proposalReturned(m)
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
	result := writeError(m.err)
	if result.Code == engine.CodeInternalError {
		a.failStop(fmt.Errorf("write to the journal: %w", m.err))
	}
	rejectWrites(batch, result)
}

// commit sends the notifications and then WriteResult for each write of a durable batch.
func (a *Actor) commit(batch []*Write) {
	a.log.Health.noteDone()
	for _, w := range batch {
		for _, n := range w.Notifications {
			n.To.Send(n.Message)
		}
		w.From.Send(&WriteResult{Write: w})
	}
}

// failStop stops the Actor and the node.
func (a *Actor) failStop(err error) {
	a.stop(writeError(err))
	a.log.Fail(err)
}

// stop rejects all waiting and later writes. A batch in a local journal's Append still gets its result. A batch
// proposed to a SharedJournal gets an error at once.
func (a *Actor) stop(cause *engine.Error) {
	if a.stopCause == nil {
		a.stopCause = ReadOnly(cause)
	}
	if a.replication != nil {
		a.abandonProposal()
	}
	a.rejectAll()
}

func (a *Actor) rejectAll() {
	rejectWrites(a.waiting, a.stopCause)
	a.waiting = nil
	if a.finishRequest != nil && !a.writerBusy {
		a.finishRequest.Reply(struct{}{}, nil)
		a.finishRequest = nil
	}
}

func (a *Actor) dropped(m *dropResult) {
	a.writerBusy = false
	if m.err != nil {
		a.failStop(fmt.Errorf("drop old records: %w", m.err))
	}
}
