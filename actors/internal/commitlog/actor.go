package commitlog

import (
	"fmt"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/wal"
)

// Write asks the Actor to make the records of an owner durable. An owner is an actor that keeps state: a currency, a
// shard or the registrar. It has at most one Write in flight.
type Write struct {
	mailbox.OneWay
	From          *mailbox.Ref // the owner
	Records       [][]byte
	Notifications []Notification // sent once the records are durable, before Committed
	RemoteSeq     uint64         // number of RemoteEvents that the owner had received when it produced the records
}

// Notification informs another owner of a write. A snapshot that includes the write also includes what the notification
// changes.
type Notification struct {
	To      *mailbox.Ref
	Message mailbox.Message
}

// Reject tells the owner that the Actor has stopped.
func (w *Write) Reject(cause *engine.Error) { w.From.Send(&Committed{Err: cause}) }

// Committed is the result of a Write. With Err nil the records are durable.
type Committed struct {
	mailbox.OneWay
	Err *engine.Error
}

// finishRequest asks the Actor to take a last snapshot. The Actor then replies.
type finishRequest = mailbox.Request[struct{}, struct{}]

// Actor orders the writes of all owners. It collects them in batches, lets the writer append one batch at a time, and
// sends the results to the owners in order.
type Actor struct {
	log         *Log
	currencies  []*mailbox.Ref
	shards      []*mailbox.Ref // of accounts
	registry    *mailbox.Ref
	snapshot    snapshotPlan
	replication *replication // nil if no other node writes the log

	last          uint64 // sequence of the last durable record
	waiting       []*Write
	inFlight      []*Write // the batch that is being appended, or proposed to a shared journal
	writerBusy    bool     // the writer is executing a job
	gatherPending bool     // a gathered message is in the mailbox
	gatherDone    bool     // the gathered message has arrived, so append the waiting writes
	stopCause     *engine.Error
	stateRequests []*stateRequest
	finishRequest *finishRequest
}

// Receive implements mailbox.Actor.
func (a *Actor) Receive(msg mailbox.Message) {
	switch m := msg.(type) {
	case *Write:
		a.enqueue(m)
	case *gathered:
		a.gatherPending, a.gatherDone = false, true
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
	case *stateRequest:
		a.queueStateRequest(m)
	case *finishRequest:
		a.finishRequest = m
	case *nodeStopping:
		a.replication.stopping = true
		a.majorityLost()
	case *mailbox.Halt:
		a.stop(m.Err)
	}
	a.advance()
}

// Fatal implements mailbox.Actor.
func (a *Actor) Fatal(mailbox.Message) bool { return true }

// Abort implements mailbox.Actor.
func (a *Actor) Abort(cause *engine.Error) { a.stop(cause) }

// enqueue queues a write. It rejects stale writes. While the cluster has no majority, it rejects every write.
func (a *Actor) enqueue(w *Write) {
	switch {
	case a.replication != nil && a.replication.stale(w):
		w.From.Send(&Committed{Err: ErrConflict})
	case a.noMajority():
		w.From.Send(&Committed{Err: ReadOnly(ErrNoMajority)})
	default:
		a.log.Health.noteQueued()
		a.waiting = append(a.waiting, w) // at most one of each owner
	}
}

// stateRequestsMax is the maximum number of stateRequests that wait while a batch is being appended.
const stateRequestsMax = 64

func (a *Actor) queueStateRequest(q *stateRequest) {
	if len(a.stateRequests) >= stateRequestsMax {
		q.Reject(mailbox.ErrOverloaded)
		return
	}
	a.stateRequests = append(a.stateRequests, q)
}

// advance starts the next step if the writer is idle. With a shared journal the state changes only when a record is
// delivered, so it may take a snapshot even while the writer is busy.
func (a *Actor) advance() {
	switch {
	case a.stopCause != nil:
		a.rejectAll()
	case a.writerBusy && a.replication == nil:
	case a.snapshot.dropBefore > 0 && !a.writerBusy:
		before := a.snapshot.dropBefore
		a.writerBusy, a.snapshot.dropBefore = true, 0
		a.log.writer.submit(func() { a.log.drop(before) })
	case a.snapshot.due() && a.snapshot.begin(a.last):
		a.requestParts(&StateSnapshot{Sequence: a.last, Full: true, Done: a.log.WriteSnapshot})
		a.advance()
	case len(a.stateRequests) > 0:
		a.answerStateRequests()
		a.advance()
	case a.writerBusy || len(a.inFlight) > 0:
	case len(a.waiting) > 0 && !a.gatherDone && a.log.Ref.Waiting() > 0:
		a.gather()
	case len(a.waiting) > 0:
		a.append()
	case a.finishRequest != nil && !a.snapshot.running:
		a.finish()
	}
}

// gathered is a message that the Actor sends to itself. All messages sent before it arrive before it.
type gathered struct{ mailbox.OneWay }

// gather delays the next batch until all writes that are already in the mailbox have joined it. This saves a sync.
func (a *Actor) gather() {
	if !a.gatherPending {
		a.gatherPending = true
		a.log.Ref.Send(&gathered{})
	}
}

// finish tries once to take a last snapshot. Then it replies to Log.Finish.
func (a *Actor) finish() {
	if a.snapshot.last < a.last && !a.snapshot.finalTried {
		a.snapshot.final, a.snapshot.finalTried = true, true
		a.advance()
		return
	}
	a.finishRequest.Reply(struct{}{}, nil)
	a.finishRequest = nil
}

// append submits as many waiting writes as fit into one batch. One write always fits.
func (a *Actor) append() {
	a.gatherDone = false
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
	a.log.Health.noteTaken(len(a.waiting) == 0)
	if a.replication != nil {
		a.proposeBundle(records)
		return
	}
	a.countAppended(len(records), bytes)
	a.submitAppend(records)
}

func (a *Actor) submitAppend(records [][]byte) {
	a.writerBusy = true
	expected := a.last
	a.log.writer.submit(func() { a.log.append(expected, records) })
}

// countAppended counts records that no snapshot includes yet.
func (a *Actor) countAppended(records, bytes int) {
	a.snapshot.count(records, bytes)
	if a.snapshot.late() {
		a.log.Health.snapshotLate.Begin(a.log.Health.Clock())
	}
}

// written sends the result of a batch to its owners.
func (a *Actor) written(m *written) {
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
	for _, w := range batch {
		w.From.Send(&Committed{Err: result})
	}
}

// commit sends the notifications and Committed for each write of a durable batch.
func (a *Actor) commit(batch []*Write) {
	a.log.Health.noteDone()
	for _, w := range batch {
		for _, n := range w.Notifications {
			n.To.Send(n.Message)
		}
		w.From.Send(&Committed{})
	}
}

// failStop stops the Actor and the node.
func (a *Actor) failStop(err error) {
	a.stop(writeError(err))
	a.log.Fail(err)
}

// stop rejects all later writes. A batch that is being appended to a local log still gets its result. A proposal to a
// shared journal fails at once.
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
	for len(a.waiting) > 0 {
		w := a.waiting[0]
		a.waiting = a.waiting[1:]
		w.From.Send(&Committed{Err: a.stopCause})
	}
	for len(a.stateRequests) > 0 {
		q := a.stateRequests[0]
		a.stateRequests = a.stateRequests[1:]
		q.Reject(a.stopCause)
	}
	if a.finishRequest != nil && (!a.writerBusy || a.replication != nil) {
		a.finishRequest.Reply(struct{}{}, nil)
		a.finishRequest = nil
	}
}

// dropped handles the result of dropping old records.
func (a *Actor) dropped(m *dropped) {
	a.writerBusy = false
	if m.err != nil {
		a.failStop(fmt.Errorf("drop old records: %w", m.err))
	}
}
