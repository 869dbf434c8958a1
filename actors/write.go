package actors

import (
	"fmt"
	"runtime/debug"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/wal"
)

// Limits of the work of one job.
const (
	commandObservationsMax = 2048 // observations (rates of one source) in one command
	batchObservationsMax   = 2048 // observations in one batch; a command with more is a batch by itself
)

// command asks for a change of one currency.
type command = mailbox.Request[engine.Command, engine.Receipt]

// writes are the commands of one currency that wait or are in progress. The actor processes them in batches, one batch
// at a time. A batch has three steps:
//
//	decide   a job (mailbox.Ref.StartJob) decides which events the commands cause
//	write    the journal makes the events durable
//	apply    another job applies the events to the state
//
// While a job runs, only the job accesses currencyActor.state.
type writes struct {
	pendingMax   int        // Config.PendingWritesMax
	waiting      []*command // commands that are not in a batch yet
	inFlight     *writeBatch
	decideSingly int           // number of commands at the head of waiting that need a batch of their own
	stopped      *engine.Error // not nil: the node has stopped, and commands are rejected with this error

	oneBundle  bool // several nodes share the journal, so a batch must fit into one record (record.Bundle)
	jobRunning bool
	remoteEvents

	applying         bool                         // currencyActor.snapshot lacks a durable change
	snapshotRequests []*commitlog.SnapshotRequest // requests of the journal actor that wait until currencyActor.snapshot has that change
}

// writeBatch is a batch of commands in one of the three steps.
type writeBatch struct {
	commands []*command
	decision engine.Decision
}

// decided is the result of a job that decides which events a batch causes.
type decided struct {
	mailbox.OneWay
	remoteSeq uint64 // remoteEvents.remoteSeq when the job was started
	decision  engine.Decision
	records   [][]byte // the encoded events of decision
	err       error
}

// applied is the result of a job that applies events.
type applied struct {
	mailbox.OneWay
	currencyUpdate
	publishes bool // the events publish a rate
	failed    any  // not nil: the job panicked
	remote    bool // the events come from another node
}

// accept queues a command.
func (c *currencyActor) accept(m *command) {
	w := &c.writes
	switch {
	case w.stopped != nil:
		m.Reject(w.stopped)
		return
	case len(w.waiting) >= w.pendingMax:
		m.Reject(mailbox.ErrOverloaded)
		return
	}
	w.waiting = append(w.waiting, m)
	c.next()
}

// next starts the next job, if no job runs. Events of other nodes come first. A new batch starts only if no batch is in
// flight.
func (c *currencyActor) next() {
	w := &c.writes
	if w.jobRunning || c.applyRemote() || w.inFlight != nil {
		return
	}
	batch := w.take()
	if len(batch) == 0 {
		return
	}
	w.inFlight = &writeBatch{commands: batch}
	remoteSeq := w.remoteSeq
	c.job(func(pause func()) mailbox.Message {
		result := c.decide(batch, pause)
		result.remoteSeq = remoteSeq
		return result
	})
}

// job runs work in a job and sends its result to the actor. The actor must not access the state until it has received
// the result.
func (c *currencyActor) job(work func(pause func()) mailbox.Message) {
	c.writes.jobRunning = true
	c.self.StartJob(func(pause func()) {
		c.state.SetYield(pause)
		result := work(pause)
		c.state.SetYield(nil)
		c.self.Send(result)
	})
}

// decided sends the records of a decided batch to the journal. If the batch has no records, it answers the commands. If
// the decision failed, each command is decided again in a batch of its own, so that only the faulty command fails.
func (c *currencyActor) decided(m *decided) {
	w := &c.writes
	done := w.inFlight
	w.jobRunning = false
	switch {
	case done == nil:
		return // Abort has rejected the commands
	case m.remoteSeq != w.remoteSeq:
		c.redecide()
		return
	case m.err == nil && len(m.records) > 0:
		done.decision = m.decision
		c.journal.Send(&commitlog.Write{From: c.self, Records: m.records, RemoteSeq: m.remoteSeq})
		return
	}
	w.inFlight = nil
	switch {
	case m.err == nil:
		answer(done.commands, m.decision)
	case len(done.commands) > 1:
		w.decideSingly = len(done.commands)
		w.waiting = append(done.commands, w.waiting...)
	default:
		done.commands[0].Reply(engine.Receipt{}, m.err)
	}
	c.next()
}

// take removes the next batch from waiting. A batch has as many Observe commands as fit, or one other command.
func (w *writes) take() []*command {
	var batch []*command
	observations := 0
	for len(w.waiting) > 0 {
		m := w.waiting[0]
		observe, merges := m.Query.(engine.Observe)
		single := !merges || w.decideSingly > 0
		size := countObservations(observe.Refreshes)
		if len(batch) > 0 && (single || observations+size > batchObservationsMax) {
			break
		}
		w.waiting[0] = nil // otherwise the array would keep the command
		w.waiting = w.waiting[1:]
		w.decideSingly = max(0, w.decideSingly-1)
		if m.Abandoned() {
			continue
		}
		batch, observations = append(batch, m), observations+size
		if single {
			break
		}
	}
	return batch
}

func countObservations(refreshes []engine.Refresh) int {
	n := 0
	for i := range refreshes {
		n += len(refreshes[i].Observations)
	}
	return n
}

// decide decides which events a batch of commands causes, and encodes the events. It does not change the state.
// Therefore it can convert a panic to an error.
func (c *currencyActor) decide(batch []*command, pause func()) (result *decided) {
	defer func() {
		if reason := recover(); reason != nil {
			result = &decided{err: &engine.Error{
				Code: engine.CodeInternalError, Message: "an internal error",
				Cause: fmt.Errorf("panic while deciding: %v\n%s", reason, debug.Stack()),
			}}
		}
	}()
	decision, err := c.state.Decide(merged(batch), c.clock())
	if err != nil {
		return &decided{err: err}
	}
	records, err := encodeAll(decision.Events, commitlog.BatchBytesMax(c.writes.oneBundle), pause)
	return &decided{decision: decision, records: records, err: err}
}

// encodeChunkBytes is the total size of records after which encodeAll calls pause.
const encodeChunkBytes = 16 << 10

// encodeAll encodes events as records. It returns an error if the records do not fit into one batch of the journal.
func encodeAll(events []engine.Event, bytesMax int, pause func()) (records [][]byte, err error) {
	encoded := 0
	for _, event := range events {
		if encoded >= encodeChunkBytes {
			encoded = 0
			pause()
		}
		record, err := record.Encode(event)
		if err != nil {
			return nil, err
		}
		if limit := min(wal.RecordBytesMax, bytesMax); len(record) > limit {
			return nil, commitlog.TooLarge(fmt.Errorf("a record of %d bytes, at most %d", len(record), limit))
		}
		records, encoded = append(records, record), encoded+len(record)
	}
	if size := commitlog.BatchBytes(records); size > bytesMax || len(records) > wal.BatchRecordsMax {
		return nil, commitlog.TooLarge(fmt.Errorf("%d records of %d bytes, at most %d", len(records), size, bytesMax))
	}
	return records, nil
}

func merged(batch []*command) engine.Command {
	if len(batch) == 1 {
		return batch[0].Query
	}
	var refreshes []engine.Refresh
	for _, m := range batch {
		refreshes = append(refreshes, m.Query.(engine.Observe).Refreshes...)
	}
	return engine.Observe{Refreshes: refreshes}
}

// committed starts a job that applies a durable batch. If the batch was not written, it rejects the commands, or
// decides them again.
func (c *currencyActor) committed(m *commitlog.Committed) {
	w := &c.writes
	done := w.inFlight
	if done == nil {
		return // Abort has rejected the commands
	}
	if m.Err == commitlog.ErrConflict {
		c.redecide()
		return
	}
	if m.Err != nil {
		w.inFlight = nil
		for _, command := range done.commands {
			command.Reject(m.Err)
		}
		c.next()
		return
	}
	w.applying = true
	previous := c.view
	c.job(func(func()) mailbox.Message { return c.apply(done.decision.Events, previous) })
}

// apply applies durable events to the state. It runs in a job. previous is the actor's view (ranked rates) before the
// events.
func (c *currencyActor) apply(events []engine.Event, previous *engine.RankedView) (result *applied) {
	result = &applied{}
	defer func() {
		if reason := recover(); reason != nil {
			result.failed = fmt.Errorf("%v\n%s", reason, debug.Stack())
		}
	}()
	for _, event := range events {
		c.state.Apply(event)
		result.publishes = result.publishes || publishes(event)
	}
	result.snapshot = c.state.Snapshot()
	result.checkedAt, result.freshUntil = result.snapshot.Freshness()
	result.view = c.nextView(previous)
	return result
}

// nextView returns the view (ranked rates) after the change. If making the view panics, it returns nil. The next
// request then tries to make the view again, and gets the error.
func (c *currencyActor) nextView(previous *engine.RankedView) (view *engine.RankedView) {
	defer func() {
		if recover() != nil {
			view = nil
		}
	}()
	return c.state.View(previous, c.clock())
}

// applied publishes a change and answers the commands that made it.
func (c *currencyActor) applied(m *applied) {
	if m.failed != nil {
		panic(m.failed) // the state may be half changed, so the node must stop
	}
	w := &c.writes
	if m.publishes {
		c.hasRates.Store(true)
	}
	c.publish(m.currencyUpdate)
	w.jobRunning, w.applying = false, false
	for _, s := range w.snapshotRequests {
		s.SetCurrency(c.snapshot)
	}
	w.snapshotRequests = nil
	if m.remote {
		w.release()
	} else if done := w.inFlight; done != nil {
		w.inFlight = nil
		answer(done.commands, done.decision)
	}
	c.next()
}

// share gives the state of the currency to a snapshot. The state must have all changes that were durable when the
// request was sent. If the node has stopped, share rejects the request, because the state may lack a durable change.
// With such a snapshot, the next start would skip the record of this change.
func (c *currencyActor) share(m *commitlog.SnapshotRequest) {
	w := &c.writes
	switch {
	case w.stopped != nil:
		m.Reject(w.stopped)
	case len(w.queued) > 0:
		last := w.queued[len(w.queued)-1]
		last.snapshotRequests = append(last.snapshotRequests, m)
	case !w.applying:
		m.SetCurrency(c.snapshot)
	default:
		w.snapshotRequests = append(w.snapshotRequests, m) // bounded: one snapshot is taken at a time
	}
}

// publishes reports whether an event makes a rate visible to reads.
func publishes(event engine.Event) bool {
	switch e := event.(type) {
	case *engine.Refreshed:
		return len(e.Quotes) > 0
	case *engine.Released:
		return true
	}
	return false
}

// answer answers each command of a batch with its part of the receipt of the batch.
func answer(batch []*command, decided engine.Decision) {
	if len(batch) == 1 {
		batch[0].Reply(decided.Receipt, nil)
		return
	}
	refused := decided.Receipt.Refused // refusals, in the order of the refreshes
	first := 0
	for _, m := range batch {
		refreshes := m.Query.(engine.Observe).Refreshes
		end := first + len(refreshes)
		var receipt engine.Receipt
		for _, count := range decided.Counts[first:end] {
			receipt.Accepted += count.Accepted
			receipt.Changed += count.Changed
			receipt.Repeated += count.Repeated
		}
		for len(refused) > 0 && refused[0].Refresh < end {
			refusal := refused[0]
			refusal.Refresh -= first
			receipt.Refused = append(receipt.Refused, refusal)
			refused = refused[1:]
		}
		first = end
		m.Reply(receipt, nil)
	}
}

// halt rejects all commands from now on, because the node has stopped. Reads are still answered.
func (c *currencyActor) halt(err *engine.Error) {
	c.writes.stopped = err
	c.Abort(err)
}

// Abort implements mailbox.Actor. It rejects all commands and snapshot requests.
func (c *currencyActor) Abort(err *engine.Error) {
	w := &c.writes
	w.stopped = err
	if w.inFlight != nil {
		for _, m := range w.inFlight.commands {
			m.Reject(err)
		}
		w.inFlight = nil
	}
	for _, m := range w.waiting {
		m.Reject(err)
	}
	w.waiting = nil
	for _, s := range w.snapshotRequests {
		s.Reject(err)
	}
	w.snapshotRequests = nil
	w.reject(err)
}
