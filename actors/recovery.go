package actors

import (
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/wal"
)

// Recovery says what Open found in the journal; of one that is no local log only its end is known.
func (s *System) Recovery() wal.Recovery {
	if local, ok := s.journal.(interface{ Recovery() wal.Recovery }); ok {
		return local.Recovery()
	}
	return wal.Recovery{Report: wal.Report{Last: s.journal.Last()}}
}

// progress tells how long the replay will take. The goroutine that replays writes, every caller reads.
type progress struct {
	began       time.Time
	total, done atomic.Uint64 // records
}

// retryAfter is how long the rest takes at the pace so far (E4).
func (p *progress) retryAfter(now time.Time) time.Duration {
	done, total, spent := p.done.Load(), p.total.Load(), now.Sub(p.began)
	if done == 0 || done > total || spent <= 0 {
		return retryReplay
	}
	left := spent / time.Duration(done) * time.Duration(total-done)
	return min(max(left, retryReplayMin), retryReplayMax)
}

// recover builds the state and starts the actors. It is the goroutine that Open starts and Close awaits.
func (s *System) recover() {
	defer s.replay.Done()
	r := newReplayer(s)
	err := r.run()
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

// populate starts an actor for each currency, the directory and the journal, with the replayed state.
func (s *System) populate(r *replayer) error {
	for _, currency := range s.config.Catalogue.Currencies() {
		r.state(currency.Code)
	}
	c := &s.config
	s.codes = slices.Sorted(maps.Keys(r.states))
	s.unknownCurrency = engine.NewCurrencyState("", c.Catalogue, c.Rules).Snapshot().View(nil, c.Clock())
	directory := &directoryActor{clock: c.Clock, catalogue: c.Catalogue}
	for _, code := range s.codes {
		directory.snapshots = append(directory.snapshots, r.states[code].Snapshot())
	}
	s.hasRates.Store(slices.ContainsFunc(directory.snapshots, (*engine.CurrencySnapshot).HasRates))
	clerk := &commitlog.Actor{
		Fail: s.fail, Logger: c.Logger, Health: s.journalHealth, Writer: s.writer, Last: r.last,
		Snapshot: commitlog.SnapshotPlan{
			Writer: s.snapshotWriter, RecordsMax: c.SnapshotRecords, BytesMax: c.SnapshotBytes, Last: r.snapshot,
			Records: r.events, Bytes: r.bytes, UncoveredRecords: r.events, UncoveredBytes: r.bytes,
		},
	}
	s.journalHealth.Sequence.Store(r.last)
	var err error
	if s.directory, err = s.actors.Spawn("directory", &s.kinds.directory, directory); err != nil {
		return err
	}
	clerkRef, err := s.actors.Spawn("journal", &s.kinds.journal, clerk)
	if err != nil {
		return err
	}
	s.currencies = make(map[string]*mailbox.Ref, len(s.codes))
	for i, code := range s.codes {
		owner := s.newCurrencyActor(i, r.states[code], clerkRef)
		owner.freshness = &freshness{currency: code}
		checkedAt, freshUntil := owner.snapshot.Freshness()
		owner.freshness.set(freshUntil, checkedAt)
		r.accounts.ObserveWall(checkedAt)
		s.freshness = append(s.freshness, owner.freshness)
		if owner.self, err = s.actors.Spawn("currency-"+code, &s.kinds.currency, owner); err != nil {
			return err
		}
		s.currencies[code] = owner.self
		clerk.Currencies = append(clerk.Currencies, owner.self)
	}
	if err := s.accounts.Start(s.actors, r.accounts, clerk, clerkRef); err != nil {
		return err
	}
	s.journalActor = clerkRef
	s.writer.Start(clerkRef)
	s.snapshotWriter.Start(clerkRef)
	if s.shared != nil {
		clerk.Replication = &commitlog.Replication{Journal: s.shared, Token: s.bundleToken, Currencies: s.currencies, SentRemoteSeq: map[*mailbox.Ref]uint64{}}
		s.follower = commitlog.NewFollower(s.shared, s.bundleToken, len(clerk.Shards), s.fail)
		s.follower.Start(clerkRef)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.actorsStarted = true
	return nil
}

func (s *System) newCurrencyActor(index int, book *engine.CurrencyState, clerk *mailbox.Ref) *currencyActor {
	return &currencyActor{
		clock: s.config.Clock, directory: s.directory, journal: clerk, hasRates: &s.hasRates,
		latest: &latestUpdate{index: index}, state: book, snapshot: book.Snapshot(),
		writes: writes{pendingMax: s.config.PendingWritesMax, oneBundle: s.shared != nil},
	}
}
