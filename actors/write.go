package actors

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/wal"
)

// Limits of one step of a currency actor.
const (
	commandObservationsMax = 2048 // observations (rates of one source) in one command
	batchObservationsMax   = 2048 // observations in one batch; a larger command is a batch by itself
)

// command asks for a change of one currency.
type command = mailbox.Request[engine.Command, engine.Receipt]

// writes holds the commands of one currency. The actor processes them in batches, one at a time: it decides the events
// of a batch, the journal makes them durable, and the actor applies them.
type writes struct {
	pendingMax     int           // Config.PendingWritesMax
	waiting        []*command    // commands not in a batch yet
	inFlight       *writeBatch   // the batch that is being written, or nil
	decideOneByOne int           // number of commands at the head of waiting that each get a batch of their own
	stopped        *engine.Error // not nil: the node has stopped; the error for all commands
	oneBundle      bool          // several nodes share the journal, so a batch must fit into one record (record.Bundle)
}

// writeBatch is a batch of commands on its way through the journal.
type writeBatch struct {
	commands  []*command
	decisions []engine.Decision // one for each command
}

// answer answers the commands.
func (b *writeBatch) answer() {
	for i, m := range b.commands {
		m.Reply(b.decisions[i].Receipt, nil)
	}
}

func (b *writeBatch) reject(err *engine.Error) {
	for _, m := range b.commands {
		m.Reject(err)
	}
}

// accept queues a command.
func (c *currencyActor) accept(m *command) {
	w := &c.writes
	switch {
	case w.stopped != nil:
		m.Reject(w.stopped)
	case len(w.waiting) >= w.pendingMax:
		m.Reject(mailbox.ErrOverloaded)
	default:
		w.waiting = append(w.waiting, m)
		c.next()
	}
}

// next decides batches until one has events, and sends these to the journal. After a failed decision it decides each
// command of the batch separately, so that only the faulty command fails.
func (c *currencyActor) next() {
	w := &c.writes
	for w.inFlight == nil {
		batch := &writeBatch{commands: w.take()}
		if len(batch.commands) == 0 {
			return
		}
		term, decides := c.log.Decides()
		if !decides {
			batch.reject(commitlog.ErrNotLeader)
			continue
		}
		records, err := c.decide(batch)
		switch {
		case err == nil && len(records) > 0:
			w.inFlight = batch
			c.log.Ref.Send(&commitlog.Write{From: c.self, Records: records, Term: term})
		case err == nil:
			batch.answer()
		case len(batch.commands) > 1:
			w.decideOneByOne = len(batch.commands)
			w.waiting = append(batch.commands, w.waiting...)
		default:
			batch.commands[0].Reply(engine.Receipt{}, err)
		}
	}
}

// take removes the next batch from waiting: as many Observe commands as fit, or one other command.
func (w *writes) take() []*command {
	var batch []*command
	observations := 0
	for len(w.waiting) > 0 {
		m := w.waiting[0]
		observe, merges := m.Query.(engine.Observe)
		single := !merges || w.decideOneByOne > 0
		size := countObservations(observe.Refreshes)
		if len(batch) > 0 && (single || observations+size > batchObservationsMax) {
			break
		}
		w.waiting[0] = nil // otherwise the array would keep the command
		w.waiting = w.waiting[1:]
		w.decideOneByOne = max(0, w.decideOneByOne-1)
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

// decide decides the events of a batch and encodes them. It does not change the state, so it may convert a panic to an
// error.
func (c *currencyActor) decide(batch *writeBatch) (records [][]byte, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = &engine.Error{
				Code: engine.CodeInternalError, Message: "an internal error",
				Cause: fmt.Errorf("panic while deciding: %v\n%s", reason, debug.Stack()),
			}
		}
	}()
	if first, observe := batch.commands[0].Query.(engine.Observe); !observe {
		decision, err := c.state.Decide(batch.commands[0].Query, c.clock())
		if err != nil {
			return nil, err
		}
		batch.decisions = []engine.Decision{decision}
	} else {
		commands := []engine.Observe{first}
		for _, m := range batch.commands[1:] {
			commands = append(commands, m.Query.(engine.Observe))
		}
		batch.decisions = c.state.DecideAll(commands, c.clock())
	}
	return encodeAll(batch.decisions, commitlog.BatchBytesMax(c.writes.oneBundle))
}

// encodeAll encodes events as records. It returns an error if the records do not fit into one batch of the journal.
func encodeAll(decisions []engine.Decision, bytesMax int) (records [][]byte, err error) {
	for _, decision := range decisions {
		for _, event := range decision.Events {
			record, err := record.Encode(event)
			if err != nil {
				return nil, err
			}
			if limit := min(wal.RecordBytesMax, bytesMax); len(record) > limit {
				return nil, commitlog.TooLarge(fmt.Errorf("a record of %d bytes, at most %d", len(record), limit))
			}
			records = append(records, record)
		}
	}
	if size := commitlog.BatchBytes(records); size > bytesMax || len(records) > wal.BatchRecordsMax {
		return nil, commitlog.TooLarge(fmt.Errorf("%d records of %d bytes, at most %d", len(records), size, bytesMax))
	}
	return records, nil
}

// committed applies a durable batch and answers its commands. After a failed write it rejects the commands.
func (c *currencyActor) committed(m *commitlog.WriteResult) {
	w := &c.writes
	batch := w.inFlight
	switch {
	case batch == nil: // RejectAll has rejected the commands
		return
	case m.Err != nil:
		batch.reject(m.Err)
	default:
		for _, decision := range batch.decisions {
			c.applyAll(decision.Events)
		}
		c.post()
		batch.answer()
	}
	w.inFlight = nil
	c.next()
}

// applyAll applies durable events to the state. A panic stops the node.
func (c *currencyActor) applyAll(events []engine.Event) {
	for _, event := range events {
		c.state.Apply(event)
	}
}

// post shows the new snapshot to the readers.
func (c *currencyActor) post() { c.board.post(c.index, c.state.Snapshot()) }

// remote applies another node's events. Then no batch of this node is in flight that could become durable.
func (c *currencyActor) remote(m *commitlog.RemoteEvents[engine.Event]) {
	if c.writes.stopped == nil {
		c.applyAll(m.Events)
		c.post()
	}
	m.Window.Release()
}

// share adds the currency's state to a snapshot. On a stopped node it rejects the request: the state may lack a durable
// change, which the next start would then skip.
func (c *currencyActor) share(m *commitlog.SnapshotRequest) {
	if c.writes.stopped != nil {
		m.Reject(c.writes.stopped)
		return
	}
	m.SetCurrency(c.state.Snapshot())
}

// RejectAll implements mailbox.Actor. It rejects all commands from now on. Reads are still answered.
func (c *currencyActor) RejectAll(err *engine.Error) {
	w := &c.writes
	w.stopped = err
	if w.inFlight != nil {
		w.inFlight.reject(err)
		w.inFlight = nil
	}
	for _, m := range w.waiting {
		m.Reject(err)
	}
	w.waiting = nil
}

// currencyActor holds the state of one currency, and decides and applies all changes of it. Reads do not reach this
// actor: readers answer from the snapshots on the board.
type currencyActor struct {
	self   *mailbox.Ref
	clock  func() time.Time
	log    *commitlog.Log
	board  *board
	index  int // index of the currency in System.codes
	state  *engine.CurrencyState
	writes writes
}

// Receive implements mailbox.Actor.
func (c *currencyActor) Receive(msg mailbox.Message) {
	switch m := msg.(type) {
	case *command:
		c.accept(m)
	case *commitlog.WriteResult:
		c.committed(m)
	case *commitlog.RemoteEvents[engine.Event]:
		c.remote(m)
	case *commitlog.SnapshotRequest:
		c.share(m)
	case *mailbox.NodeFailed:
		c.RejectAll(m.Err)
	}
}

// FailsNode implements mailbox.Actor. A panic in a change is fatal: the state may be half changed, or a command lost.
func (c *currencyActor) FailsNode(mailbox.Message) bool { return true }
