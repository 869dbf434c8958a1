package actors

import (
	"fmt"
	"runtime/debug"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/wal"
)

// Limits of what is decided at once. An actor decides 2,048 observations in about ten milliseconds, in
// which its readers wait.
const (
	commandObservationsMax = 2048 // in one command; an intake is cut into such commands
	batchObservationsMax   = 2048 // in the commands that are decided as one; the first one always is
)

// command asks for a change of one currency.
type command = question[engine.Command, engine.Receipt]

// writes are the commands of one currency: one batch is being made durable, the others wait.
type writes struct {
	limit   int
	waiting []*command
	flight  *flight
	alone   int           // so many of the waiting commands must be decided one by one
	stopped *engine.Error // why nothing is changed any more
}

// flight is a batch of commands that was decided and is not yet known to be durable.
type flight struct {
	commands []*command
	decision engine.Decision
}

// accept queues a command and starts it when nothing else is under way.
func (c *currencyActor) accept(m *command) {
	w := &c.writes
	switch {
	case w.stopped != nil:
		m.settle(w.stopped)
		return
	case len(w.waiting) >= w.limit:
		m.settle(errOverflow)
		return
	}
	w.waiting = append(w.waiting, m)
	c.next()
}

// next decides waiting commands until there is something to write, and sends it to the journal.
func (c *currencyActor) next() {
	w := &c.writes
	for w.flight == nil && len(w.waiting) > 0 {
		batch := w.take()
		if len(batch) == 0 {
			return // nobody waits any more
		}
		decided, records, err := c.decide(batch)
		switch {
		case err != nil && len(batch) > 1:
			w.alone = len(batch) // one of them is bad: find out which
			w.waiting = append(batch, w.waiting...)
		case err != nil:
			batch[0].reply(engine.Receipt{}, err)
		case len(records) == 0:
			answer(batch, decided)
		default:
			w.flight = &flight{batch, decided}
			c.journal.send(&write{from: c.self, records: records})
		}
	}
}

// take takes the commands that are decided as one: observations, as many as allowed, or one other command.
func (w *writes) take() []*command {
	var batch []*command
	observations := 0
	for len(w.waiting) > 0 {
		m := w.waiting[0]
		observe, merges := m.query.(engine.Observe)
		single := !merges || w.alone > 0
		size := countObservations(observe.Refreshes)
		if len(batch) > 0 && (single || observations+size > batchObservationsMax) {
			break
		}
		w.waiting = w.waiting[1:]
		w.alone = max(0, w.alone-1)
		if m.abandoned() {
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

// decide holds a batch against the book and encodes what would change. It changes nothing, so a panic in
// it costs only the batch.
func (c *currencyActor) decide(batch []*command) (decided engine.Decision, records [][]byte, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = &engine.Error{
				Code: engine.CodeInternalError, Message: "an internal error",
				Cause: fmt.Errorf("panic while deciding: %v\n%s", reason, debug.Stack()),
			}
		}
	}()
	decided, err = c.book.Decide(merged(batch), c.clock())
	if err != nil {
		return decided, nil, err
	}
	for _, event := range decided.Events {
		record, err := encodeEvent(event)
		if err != nil {
			return decided, nil, err
		}
		if len(record) > wal.RecordBytesMax {
			return decided, nil, tooLarge(fmt.Errorf("a record of %d bytes, at most %d", len(record), wal.RecordBytesMax))
		}
		records = append(records, record)
	}
	if size := batchBytes(records); size > wal.BatchBytesMax || len(records) > wal.BatchRecordsMax {
		return decided, nil, tooLarge(fmt.Errorf("%d records of %d bytes, at most %d", len(records), size, wal.BatchBytesMax))
	}
	return decided, records, nil
}

func merged(batch []*command) engine.Command {
	if len(batch) == 1 {
		return batch[0].query
	}
	var refreshes []engine.Refresh
	for _, m := range batch {
		refreshes = append(refreshes, m.query.(engine.Observe).Refreshes...)
	}
	return engine.Observe{Refreshes: refreshes}
}

// committed makes a durable batch true and answers its commands. Only now is it seen by anybody.
func (c *currencyActor) committed(m *committed) {
	w := &c.writes
	done := w.flight
	if done == nil {
		return // given up when the node stopped
	}
	if m.err != nil {
		w.flight = nil
		for _, one := range done.commands {
			one.settle(m.err)
		}
		c.next()
		return
	}
	for _, event := range done.decision.Events {
		c.book.Apply(event)
		if publishes(event) {
			c.loaded.Store(true)
		}
	}
	c.publish()
	w.flight = nil
	answer(done.commands, done.decision)
	c.next()
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

// answer gives each command its part of the receipt.
func answer(batch []*command, decided engine.Decision) {
	if len(batch) == 1 {
		batch[0].reply(decided.Receipt, nil)
		return
	}
	refused := decided.Receipt.Refused // in the order of the refreshes
	first := 0
	for _, m := range batch {
		refreshes := m.query.(engine.Observe).Refreshes
		end := first + len(refreshes)
		var receipt engine.Receipt
		for _, count := range decided.Counts[first:end] {
			receipt.Accepted += count.Accepted
			receipt.Changed += count.Changed
			receipt.Repeated += count.Repeated
		}
		for len(refused) > 0 && refused[0].Refresh < end {
			one := refused[0]
			one.Refresh -= first
			receipt.Refused = append(receipt.Refused, one)
			refused = refused[1:]
		}
		first = end
		m.reply(receipt, nil)
	}
}

// halt gives up all changes: the node has stopped. Reads go on.
func (c *currencyActor) halt(why *engine.Error) {
	c.writes.stopped = why
	c.abort(why)
}

// abort answers everybody who waits for a change.
func (c *currencyActor) abort(why *engine.Error) {
	w := &c.writes
	w.stopped = why
	if w.flight != nil {
		for _, m := range w.flight.commands {
			m.settle(why)
		}
		w.flight = nil
	}
	for _, m := range w.waiting {
		m.settle(why)
	}
	w.waiting = nil
}
