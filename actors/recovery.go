package actors

import (
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/wal"
)

// Recovery says what Open found in the journal.
type Recovery struct {
	Last             uint64 // sequence of the newest record
	SnapshotSequence uint64 // of the newest snapshot, 0 without one; the records after it are replayed
	TornBytes        int64  // of an unfinished record at the end, cut off
	TornFile         string // where these bytes are kept
	AmbiguousTail    bool   // something acknowledged may have stood behind the end; see wal.Recovery
}

// Recovery says what Open found in the journal.
func (s *System) Recovery() Recovery { return s.recovery }

func recoveryOf(journal Journal) Recovery {
	local, ok := journal.(interface{ Recovery() wal.Recovery })
	if !ok {
		return Recovery{Last: journal.Last()}
	}
	found := local.Recovery()
	return Recovery{
		Last: found.Last, SnapshotSequence: found.SnapshotSequence,
		TornBytes: found.TornBytes, TornFile: found.TornFile, AmbiguousTail: found.AmbiguousTail,
	}
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
	r := &replayer{system: s, books: map[string]*engine.Book{}, decoder: newDecoder(), tenants: newTenantReplay(s.tenants)}
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

// replayer applies a snapshot and the records after it to books.
type replayer struct {
	system   *System
	books    map[string]*engine.Book
	decoder  *decoder
	tenants  *tenantReplay
	snapshot uint64 // sequence of the snapshot
	last     uint64 // sequence of the last record
	bytes    int64  // of the records
}

// run is the whole replay. An event that cannot be applied stops the node like a panic at work does.
func (r *replayer) run() (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("replay record %d: panic: %v\n%s", r.last+1, reason, debug.Stack())
		}
	}()
	if err := r.restore(); err != nil {
		return err
	}
	end := r.system.journal.Last()
	r.system.progress.total.Store(end - r.snapshot)
	r.last = r.snapshot
	if err := r.system.journal.Read(r.snapshot+1, r.apply); err != nil {
		return fmt.Errorf("replay the log after record %d: %w", r.last, err)
	}
	if r.last != end {
		return fmt.Errorf("replay the log: %d records of %d came", r.last, end)
	}
	return nil
}

// restore begins with the newest snapshot, or with nothing.
func (r *replayer) restore() error {
	sequence, reader, ok, err := r.system.journal.Snapshot()
	if err != nil {
		return fmt.Errorf("open snapshot: %w", err)
	}
	if !ok {
		return nil
	}
	states, err := r.decoder.readSnapshot(reader)
	if closeErr := reader.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("restore the snapshot at record %d: %w", sequence, err)
	}
	for _, state := range states {
		r.books[state.Currency] = engine.Restore(state, r.system.config.Catalogue, r.system.config.Rules)
	}
	r.tenants.restore(&r.decoder.ledger)
	r.snapshot = sequence
	return nil
}

func (r *replayer) apply(sequence uint64, record []byte) error {
	if sequence != r.last+1 {
		return fmt.Errorf("record %d follows record %d", sequence, r.last)
	}
	if r.system.phase.Load() == stopping {
		return errReplayStopped
	}
	event, err := r.decoder.decodeEvent(record)
	if err != nil {
		return fmt.Errorf("record %d: %w", sequence, err)
	}
	if quotes, ok := event.(engine.Event); ok {
		r.book(quotes.CurrencyCode()).Apply(quotes)
	} else if err := r.tenants.apply(event); err != nil {
		return fmt.Errorf("record %d: %w", sequence, err)
	}
	r.last = sequence
	r.bytes += int64(len(record))
	r.system.progress.done.Add(1)
	return nil
}

// book is the book of a currency, also of one that the catalogue does not know any more.
func (r *replayer) book(code string) *engine.Book {
	book, ok := r.books[code]
	if !ok {
		book = engine.NewBook(code, r.system.config.Catalogue, r.system.config.Rules)
		r.books[code] = book
	}
	return book
}

// populate starts an actor for each currency, the directory and the journal, with the replayed state.
func (s *System) populate(r *replayer) error {
	for _, currency := range s.config.Catalogue.Currencies() {
		r.book(currency.Code)
	}
	c := &s.config
	s.codes = slices.Sorted(maps.Keys(r.books))
	s.nowhere = engine.NewBook("", c.Catalogue, c.Rules).Board().View(c.Clock())
	directory := &directoryActor{clock: c.Clock, catalogue: c.Catalogue}
	for _, code := range s.codes {
		directory.boards = append(directory.boards, r.books[code].Board())
	}
	s.loaded.Store(engine.NewMarket(c.Catalogue, directory.boards, c.Clock()).Loaded())
	clerk := &journalActor{
		fail: s.fail, logger: c.Logger, writer: s.writer, last: r.last,
		snapshot: snapshotPlan{
			keeper: s.keeper, recordsMax: c.SnapshotRecords, bytesMax: c.SnapshotBytes, last: r.snapshot,
			records: int(r.last - r.snapshot), bytes: r.bytes,
		},
	}
	var err error
	if s.directory, err = s.stage.spawn("directory", directory); err != nil {
		return err
	}
	clerkRef, err := s.stage.spawn("journal", clerk)
	if err != nil {
		return err
	}
	s.currencies = make(map[string]*ref, len(s.codes))
	for i, code := range s.codes {
		owner := s.currency(i, r.books[code], clerkRef)
		if owner.self, err = s.stage.spawn("currency-"+code, owner); err != nil {
			return err
		}
		s.currencies[code] = owner.self
		clerk.owners = append(clerk.owners, owner.self)
	}
	if err := s.tenants.populate(s, r.tenants, clerk, clerkRef); err != nil {
		return err
	}
	s.clerk = clerkRef
	s.writer.start(clerkRef)
	s.keeper.start(clerkRef)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heirs = slices.Concat(clerk.owners, s.tenants.heirs(), []*ref{clerkRef})
	return nil
}

func (s *System) currency(index int, book *engine.Book, clerk *ref) *currencyActor {
	return &currencyActor{
		clock: s.config.Clock, directory: s.directory, journal: clerk, loaded: &s.loaded,
		latest: &latestBoard{index: index}, book: book, board: book.Board(),
		writes: writes{limit: s.config.PendingWritesMax},
	}
}
