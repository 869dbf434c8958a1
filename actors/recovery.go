package actors

import (
	"maps"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/actors/internal/commitlog"
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
	r := newReplayer(s)
	err := s.join()
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
		owner := s.newCurrencyActor(i, r.states[code])
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
		s.log.Shared.Serve(s.answer)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.actorsStarted = true
	return nil
}

// newCurrencyActor returns the actor of a currency. index is the currency's index in s.codes. In a shared journal each
// batch must fit into one record, called a bundle (writes.oneBundle).
func (s *System) newCurrencyActor(index int, state *engine.CurrencyState) *currencyActor {
	return &currencyActor{
		clock: s.config.Clock, log: s.log, board: s.board, index: index, state: state,
		writes: writes{pendingMax: s.config.PendingWritesMax, oneBundle: s.log.Shared != nil},
	}
}

// Unmeasured returns the currencies whose first value cannot be checked: they have neither a plausible range in the
// catalogue nor a reference rate. A wrong first value would be published.
func (s *System) Unmeasured() (codes []string) {
	if s.available() != nil {
		return nil
	}
	for _, snapshot := range *s.board.snapshots.Load() {
		currency, known := s.config.Catalogue.Currency(snapshot.Currency())
		if known && currency.Lowest.IsNull() && currency.Highest.IsNull() && !snapshot.HasReference() {
			codes = append(codes, currency.Code)
		}
	}
	return codes
}
