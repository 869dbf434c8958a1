package actors

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"github.com/tasard/tasard/actors/internal/accounts"
	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/engine"
)

const (
	replayBatch   = 512 // minimum number of events in a batch; only the final batch may have fewer
	replayBatches = 8   // batches that may wait to be applied
)

// replayer restores the newest snapshot and applies the records after it. One goroutine reads and decodes the records.
// Another goroutine applies their events. Each does about half of the work.
type replayer struct {
	system   *System
	states   map[string]*engine.CurrencyState
	decoder  *record.Decoder
	accounts *accounts.Replay
	snapshot uint64 // number (sequence) of the last record in the restored snapshot; 0 = no snapshot
	last     uint64 // number (sequence) of the newest record that was read
	events   int    // number of events in the records read
	bytes    int64  // size of the records read

	batch   *batch      // the batch to which read adds events
	batches chan *batch // batches to apply
	free    chan *batch // applied batches, for reuse
	applied chan error  // receives the result of apply
	failed  atomic.Bool // apply has failed, so that read can stop
}

// batch has events that are to be applied.
type batch struct {
	events  []any
	records uint64       // number of records from which the events come
	memory  record.Arena // memory from which the events are allocated
}

func newReplayer(s *System) *replayer {
	return &replayer{
		system: s, states: map[string]*engine.CurrencyState{}, decoder: record.NewDecoder(), accounts: accounts.NewReplay(s.config.AccountShards),
		batches: make(chan *batch, replayBatches), free: make(chan *batch, replayBatches+2), applied: make(chan error, 1),
	}
}

func (r *replayer) run() error {
	r.accounts.SharedCodes = r.system.accounts.SharedCodes
	r.accounts.Begin(r.system.accounts.LoginCodeKey)
	if err := r.restore(); err != nil {
		return err
	}
	end := r.system.log.Journal.Last()
	r.system.progress.total.Store(end - r.snapshot)
	r.last = r.snapshot
	r.begin()
	go r.apply()
	err := r.system.log.Journal.Read(r.snapshot+1, r.read)
	r.batches <- r.batch // may be empty
	close(r.batches)
	if applied := <-r.applied; applied != nil {
		return applied
	}
	if err != nil {
		return fmt.Errorf("replay the log after record %d: %w", r.last, err)
	}
	if r.last != end {
		return fmt.Errorf("replay the log: the last record is %d, want %d", r.last, end)
	}
	return nil
}

// restore loads the newest snapshot, if there is one.
func (r *replayer) restore() (err error) {
	sequence, reader, ok, err := r.system.log.Journal.Snapshot()
	if err != nil {
		return fmt.Errorf("open snapshot: %w", err)
	}
	if !ok {
		return nil
	}
	defer recovered(&err)
	accounts := &accounts.SnapshotAccounts{Decoder: r.decoder}
	snapshot, err := r.decoder.Snapshot(reader, accounts.Visitor())
	if closeErr := reader.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("restore the snapshot at record %d: %w", sequence, err)
	}
	for _, state := range snapshot.Currencies {
		r.states[state.Currency] = engine.RestoreCurrencyState(state, r.system.config.Catalogue, r.system.config.Rules)
	}
	if err := r.accounts.Restore(accounts, snapshot); err != nil {
		return fmt.Errorf("restore the snapshot at record %d: %w", sequence, err)
	}
	r.snapshot = sequence
	return nil
}

// read decodes one record and adds its events to the batch.
func (r *replayer) read(sequence uint64, data []byte) error {
	if sequence != r.last+1 {
		return fmt.Errorf("record %d follows record %d", sequence, r.last)
	}
	if r.system.phase.Load() == stopping || r.failed.Load() {
		return errReplayStopped
	}
	before := len(r.batch.events)
	events, err := r.decoder.Events(data, r.batch.events)
	if err != nil {
		return fmt.Errorf("record %d: %w", sequence, err)
	}
	r.last = sequence
	r.bytes += int64(len(data))
	r.events += len(events) - before
	r.batch.events = events
	if r.batch.records++; len(events) >= replayBatch {
		r.batches <- r.batch
		r.begin()
	}
	return nil
}

// begin starts a batch. It reuses the memory of an applied batch if there is one.
func (r *replayer) begin() {
	select {
	case r.batch = <-r.free:
		r.batch.events, r.batch.records = r.batch.events[:0], 0
		r.batch.memory.Reset()
	default:
		r.batch = &batch{events: make([]any, 0, replayBatch)}
	}
	r.decoder.UseArena(&r.batch.memory)
}

// apply applies the batches. It runs in its own goroutine, for which run waits. After an error it receives the
// remaining batches without applying them, so that read does not block.
func (r *replayer) apply() {
	var failure error
	for batch := range r.batches {
		if failure == nil {
			failure = r.applyBatch(batch.events)
			r.failed.Store(failure != nil)
		}
		r.system.progress.done.Add(batch.records)
		r.free <- batch
	}
	r.applied <- failure
}

func (r *replayer) applyBatch(batch []any) (err error) {
	defer recovered(&err)
	for _, event := range batch {
		if rateEvent, ok := event.(engine.Event); ok {
			r.state(rateEvent.CurrencyCode()).Apply(rateEvent)
			continue
		}
		if err := r.accounts.Apply(event); err != nil {
			return fmt.Errorf("replay: %w", err)
		}
	}
	return nil
}

// recovered stores a panic as an error in err. It must be deferred.
func recovered(err *error) {
	if reason := recover(); reason != nil {
		*err = fmt.Errorf("replay: panic: %v\n%s", reason, debug.Stack())
	}
}

// state returns the state of a currency, and creates it if necessary. The catalogue may lack the currency.
func (r *replayer) state(code string) *engine.CurrencyState {
	state, ok := r.states[code]
	if !ok {
		state = engine.NewCurrencyState(code, r.system.config.Catalogue, r.system.config.Rules)
		r.states[code] = state
	}
	return state
}
