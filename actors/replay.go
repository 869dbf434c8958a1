package actors

import (
	"fmt"
	"runtime/debug"

	"github.com/tasard/tasard/actors/internal/accounts"
	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/engine"
)

// replayer restores the newest snapshot and applies the later records.
type replayer struct {
	system   *System
	states   map[string]*engine.CurrencyState
	decoder  *record.Decoder
	accounts *accounts.Replay
	snapshot uint64 // sequence of the last record in the snapshot; 0 = no snapshot
	last     uint64 // sequence of the newest record read
	events   int    // number of events in the records read
	bytes    int64  // size of the records read
}

func newReplayer(s *System) *replayer {
	return &replayer{
		system: s, states: map[string]*engine.CurrencyState{}, decoder: record.NewDecoder(), accounts: accounts.NewReplay(),
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
	if err := r.system.log.Journal.Read(r.snapshot+1, r.read); err != nil {
		return fmt.Errorf("replay the log after record %d: %w", r.last, err)
	}
	if r.last != end {
		return fmt.Errorf("replay the log: the last record is %d, want %d", r.last, end)
	}
	return nil
}

// restore loads the newest snapshot, if any.
func (r *replayer) restore() (err error) {
	sequence, reader, ok, err := r.system.log.Journal.Snapshot()
	if err != nil {
		return fmt.Errorf("open snapshot: %w", err)
	}
	if !ok {
		return nil
	}
	defer recovered(&err)
	snapshot, err := r.decoder.Snapshot(reader, r.accounts.AddAccount)
	if closeErr := reader.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("restore the snapshot at record %d: %w", sequence, err)
	}
	for _, state := range snapshot.Currencies {
		r.states[state.Currency] = engine.RestoreCurrencyState(state, r.system.config.Catalogue, r.system.config.Rules)
	}
	r.accounts.Restore(snapshot)
	r.snapshot = sequence
	return nil
}

// read decodes one record and applies its events.
func (r *replayer) read(sequence uint64, data []byte) error {
	if sequence != r.last+1 {
		return fmt.Errorf("record %d follows record %d", sequence, r.last)
	}
	if r.system.phase.Load() == stopping {
		return errReplayStopped
	}
	events, err := r.decoder.Events(data, nil)
	if err != nil {
		return fmt.Errorf("record %d: %w", sequence, err)
	}
	if err := r.apply(events); err != nil {
		return fmt.Errorf("record %d: %w", sequence, err)
	}
	r.last = sequence
	r.bytes += int64(len(data))
	r.events += len(events)
	r.system.progress.done.Add(1)
	return nil
}

func (r *replayer) apply(events []any) (err error) {
	defer recovered(&err)
	for _, event := range events {
		if rateEvent, ok := event.(engine.Event); ok {
			r.state(rateEvent.CurrencyCode()).Apply(rateEvent)
		} else if err := r.accounts.Apply(event); err != nil {
			return err
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

// state returns the state of a currency. It creates a missing state, also for a currency outside the catalogue.
func (r *replayer) state(code string) *engine.CurrencyState {
	state, ok := r.states[code]
	if !ok {
		state = engine.NewCurrencyState(code, r.system.config.Catalogue, r.system.config.Rules)
		r.states[code] = state
	}
	return state
}
