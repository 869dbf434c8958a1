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

// Limits of the observations that are decided at once.
const (
	commandObservationsMax = 2048 // in one command
	batchObservationsMax   = 2048 // in the commands of one batch, unless the first has more
)

// command asks for a change of one currency.
type command = mailbox.Request[engine.Command, engine.Receipt]

// writes are the commands of one currency. One batch at a time is decided, written and applied, while other commands
// wait. Jobs (mailbox.Ref.StartJob) decide and apply. A running job owns the state, and meanwhile the actor answers
// from the snapshot.
type writes struct {
	pendingMax   int
	waiting      []*command
	inFlight     *writeBatch
	decideSingly int           // number of waiting commands that must be decided one by one
	stopped      *engine.Error // not nil: changes are rejected with it

	oneBundle  bool // a batch must fit into one bundle
	jobRunning bool // a job owns the state
	remoteEvents

	applying         bool                         // a durable change is not in the snapshot yet
	snapshotRequests []*commitlog.SnapshotRequest // requests for a snapshot with that change
}

// writeBatch is a batch of commands that is being decided, written or applied.
type writeBatch struct {
	commands []*command
	decision engine.Decision
}

// decided is the result of a deciding job.
type decided struct {
	mailbox.OneWay
	remoteSeq uint64 // value when the job began
	decision  engine.Decision
	records   [][]byte
	err       error
}

// applied is the result of an applying job.
type applied struct {
	mailbox.OneWay
	currencyUpdate
	publishes bool // a rate was published
	failed    any  // value of the panic that ended the job
	remote    bool // the events are another node's
}

// accept queues a command. It starts a job for it if no other batch is in flight.
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

// next starts a job that decides the next batch.
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

// job starts a job that owns the state until it sends its result.
func (c *currencyActor) job(work func(pause func()) mailbox.Message) {
	c.writes.jobRunning = true
	c.self.StartJob(func(pause func()) {
		c.state.SetYield(pause)
		result := work(pause)
		c.state.SetYield(nil)
		c.self.Send(result)
	})
}

// decided sends the changes of a batch to the journal, or answers the commands if there are none.
func (c *currencyActor) decided(m *decided) {
	w := &c.writes
	done := w.inFlight
	w.jobRunning = false
	switch {
	case done == nil:
		return // abandoned when the node stopped
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
		w.decideSingly = len(done.commands) // find the command that fails
		w.waiting = append(done.commands, w.waiting...)
	default:
		done.commands[0].Reply(engine.Receipt{}, m.err)
	}
	c.next()
}

// take removes the next batch from the queue. A batch has as many Observe commands as fit, or one other command.
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

// decide decides a batch and encodes its events. It does not change the state, so a panic fails only the batch.
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

// encodeChunkBytes is the size of the records that are encoded between two calls of pause.
const encodeChunkBytes = 16 << 10

// encodeAll encodes events. It returns an error if the records do not fit into one batch of the log.
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

// committed starts a job that applies a durable batch, or answers the commands if it was not written.
func (c *currencyActor) committed(m *commitlog.Committed) {
	w := &c.writes
	done := w.inFlight
	if done == nil {
		return // abandoned when the node stopped
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
	before := c.view
	c.job(func(func()) mailbox.Message { return c.apply(done.decision.Events, before) })
}

// apply applies durable events. Readers see the change only after the actor has the result.
func (c *currencyActor) apply(events []engine.Event, before *engine.RankedView) (result *applied) {
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
	result.view = c.nextView(before)
	return result
}

// nextView returns the view after the change. If making it panics, it returns nil, and the next request gets the error.
func (c *currencyActor) nextView(before *engine.RankedView) (view *engine.RankedView) {
	defer func() {
		if recover() != nil {
			view = nil
		}
	}()
	return c.state.View(before, c.clock())
}

// applied publishes a change and answers its commands.
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

// share adds the state to a snapshot, with all changes that were durable at the time of the request. A stopped node
// rejects the request. Its state may lack durable records of the log, and the snapshot would hide them.
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

func publishes(event engine.Event) bool {
	switch e := event.(type) {
	case *engine.Refreshed:
		return len(e.Quotes) > 0
	case *engine.Released:
		return true
	}
	return false
}

// answer replies to each command with its part of the receipt.
func answer(batch []*command, decided engine.Decision) {
	if len(batch) == 1 {
		batch[0].Reply(decided.Receipt, nil)
		return
	}
	refused := decided.Receipt.Refused // in the order of the refreshes
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

// halt rejects all changes, because the node has stopped. It still serves reads.
func (c *currencyActor) halt(err *engine.Error) {
	c.writes.stopped = err
	c.Abort(err)
}

// Abort implements mailbox.Actor. It rejects all commands.
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
