package actors

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/actors/internal/accounts"
	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/wal"
)

// Recovery reports the state of the journal at Open. For a journal other than wal.Log only the number (sequence) of the
// newest record is set. While the node joins a cluster, nothing is set.
func (s *System) Recovery() wal.Recovery {
	if !s.joined.Load() {
		return wal.Recovery{}
	}
	if local, ok := s.log.Journal.(interface{ Recovery() wal.Recovery }); ok {
		return local.Recovery()
	}
	return wal.Recovery{Report: wal.Report{Last: s.log.Journal.Last()}}
}

// progress is the progress of the replay. Only the replaying goroutine writes it. Other goroutines read it
// concurrently.
type progress struct {
	began       time.Time
	total, done atomic.Uint64 // numbers of records: total and already replayed
}

// retryAfter estimates the rest of the replay.
func (p *progress) retryAfter(now time.Time) time.Duration {
	done, total, elapsed := p.done.Load(), p.total.Load(), now.Sub(p.began)
	if done == 0 || done > total || elapsed <= 0 {
		return retryReplay
	}
	remaining := elapsed / time.Duration(done) * time.Duration(total-done)
	return min(max(remaining, retryReplayMin), retryReplayMax)
}

// recover (a method, not the builtin) replays the journal and starts the actors. Open runs it in a goroutine. Close
// waits for that goroutine.
func (s *System) recover() {
	defer s.replay.Done()
	err := s.join()
	// After join, which sets the cluster's secret for login codes.
	r := newReplayer(s)
	if err == nil {
		err = r.run()
	}
	if err == nil {
		err = s.populate(r)
	}
	if err != nil {
		if s.phase.Load() != stopping {
			s.fail(err)
		}
		return
	}
	if s.phase.CompareAndSwap(replaying, serving) {
		close(s.ready)
	}
}

// join blocks until a shared journal can be read.
func (s *System) join() error {
	if s.log.Shared == nil {
		return nil
	}
	key, err := s.log.Shared.Join(s.joining)
	if err == nil {
		err = s.accounts.ShareCodes(key)
	}
	s.joined.Store(err == nil)
	return err
}

// populate starts all actors with the replayed state.
func (s *System) populate(r *replayer) error {
	for _, currency := range s.config.Catalogue.Currencies() {
		r.state(currency.Code)
	}
	s.codes = slices.Sorted(maps.Keys(r.states))
	snapshots := make([]*engine.CurrencySnapshot, len(s.codes))
	for i, code := range s.codes {
		snapshots[i] = r.states[code].Snapshot()
	}
	s.board = newBoard(snapshots)
	end := commitlog.Position{Last: r.last, Snapshot: r.snapshot, Records: r.events, Bytes: r.bytes}
	if err := s.log.Spawn(s.actors, &s.kinds.journal, end); err != nil {
		return err
	}
	s.currencies = make(map[string]*mailbox.Ref, len(s.codes))
	for i, code := range s.codes {
		owner := &currencyActor{
			clock: s.config.Clock, log: s.log, board: s.board, index: i, state: r.states[code],
			writes: writes{pendingMax: s.config.PendingWritesMax, oneBundle: s.log.Shared != nil},
		}
		var err error
		if owner.self, err = s.actors.Spawn("currency-"+code, &s.kinds.currency, owner); err != nil {
			return err
		}
		s.currencies[code] = owner.self
		s.log.AddCurrency(code, owner.self)
	}
	if err := s.startReaders(runtime.GOMAXPROCS(0)); err != nil {
		return err
	}
	if err := s.accounts.Start(s.actors, r.accounts, s.log); err != nil {
		return err
	}
	s.log.Start()
	if s.log.Shared != nil {
		s.log.Shared.Serve(s.answer, s.backup)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.actorsStarted = true
	return nil
}

// Unmeasured returns the currencies whose first value cannot be checked: they have neither a plausible range in the
// catalogue nor a reference rate. A wrong first value would be published.
func (s *System) Unmeasured() (codes []string) {
	if s.available() != nil {
		return nil
	}
	for _, snapshot := range *s.board.snapshots.Load() {
		currency, known := s.config.Catalogue.Currency(snapshot.Currency)
		if known && currency.Lowest.IsNull() && currency.Highest.IsNull() && !snapshot.HasReference() {
			codes = append(codes, currency.Code)
		}
	}
	return codes
}

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
		system: s, states: map[string]*engine.CurrencyState{}, decoder: new(record.Decoder), accounts: s.accounts.NewReplay(),
	}
}

func (r *replayer) run() error {
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
		return errors.New("closed while the log was being read")
	}
	_, events, err := r.decoder.Events(data)
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
