package actors

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
)

// noon is an ordinary Wednesday in Santo Domingo.
var noon = time.Date(2026, 6, 17, 16, 0, 0, 0, time.UTC)

// testCatalogue is the catalogue with an aggregator, and a source whose past has other bounds.
func testCatalogue() *engine.Catalogue {
	return engine.DefaultCatalogue().WithSources(
		engine.Source{ID: "infodolar", Name: "InfoDolar", Priority: 200, UpstreamSource: "InfoDolar", Lifetime: engine.LifetimeDefault},
		engine.Source{ID: "past", Name: "Historia", Priority: 100, Lifetime: engine.LifetimeDefault, PlausibleRanges: []engine.PlausibleRange{
			{Currency: "USD", Until: 731_000, Lowest: decimal("5"), Highest: decimal("20"), JumpPermille: 300},
		}},
	)
}

// memoryJournal is a journal without a disk. Its records are durable: a crash leaves them.
type memoryJournal struct {
	mu       sync.Mutex
	records  [][]byte // from dropped+1 on
	dropped  uint64
	appends  int
	sequence uint64 // of the snapshot
	snapshot []byte

	before func(records [][]byte) error // of each append, outside the lock; an error refuses it
	around func(what string) error      // of each snapshot and drop, in the same way
	lazy   bool                         // the planted lie: acknowledges, and keeps it only with the next append
	later  [][]byte
}

func (m *memoryJournal) Last() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last()
}

func (m *memoryJournal) last() uint64 { return m.dropped + uint64(len(m.records)+len(m.later)) }

func (m *memoryJournal) Append(expected uint64, records [][]byte) (uint64, error) {
	if m.before != nil {
		if err := m.before(records); err != nil {
			return 0, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.appends++
	if m.last() != expected {
		return 0, fmt.Errorf("%w: %d, not %d", commitlog.ErrPosition, m.last(), expected)
	}
	var kept [][]byte
	for _, record := range records {
		kept = append(kept, bytes.Clone(record))
	}
	m.records = append(m.records, m.later...)
	if m.later = nil; m.lazy {
		m.later = kept
	} else {
		m.records = append(m.records, kept...)
	}
	return m.last(), nil
}

func (m *memoryJournal) Read(from uint64, visit func(uint64, []byte) error) error {
	m.mu.Lock()
	records := m.records[from-m.dropped-1:]
	m.mu.Unlock()
	for i, record := range records {
		if err := visit(from+uint64(i), record); err != nil {
			return err
		}
	}
	return nil
}

func (m *memoryJournal) Snapshot() (uint64, io.ReadCloser, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sequence, io.NopCloser(bytes.NewReader(m.snapshot)), m.snapshot != nil, nil
}

func (m *memoryJournal) WriteSnapshot(sequence uint64, write func(io.Writer) error) error {
	if m.around != nil {
		if err := m.around("snapshot"); err != nil {
			return err
		}
	}
	var buffer bytes.Buffer
	if err := write(&buffer); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sequence, m.snapshot = sequence, buffer.Bytes()
	return nil
}

func (m *memoryJournal) DropBefore(sequence uint64) error {
	if m.around != nil {
		if err := m.around("drop"); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.lazy {
		m.records, m.dropped = m.records[sequence-1-m.dropped:], sequence-1
	}
	return nil
}

func (m *memoryJournal) Close() error { return nil }

// crashed is what a crash at this moment leaves.
func (m *memoryJournal) crashed() *memoryJournal {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &memoryJournal{records: slices.Clone(m.records), dropped: m.dropped, sequence: m.sequence, snapshot: m.snapshot}
}

// setLazy plants the lie, or ends it.
func (m *memoryJournal) setLazy(lazy bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lazy = lazy
}

// upTo is the journal without its snapshot, as it was after a record. Nothing may have been dropped.
func (m *memoryJournal) upTo(sequence uint64) *memoryJournal {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &memoryJournal{records: slices.Clone(m.records[:sequence])}
}

func (m *memoryJournal) appended() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.appends
}

type testClock struct {
	mu  sync.Mutex
	Now time.Time
}

func (c *testClock) Read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Now
}

func (c *testClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Now = c.Now.Add(d)
}

// start opens a system and waits until it is ready. It is closed with the test.
func start(t testing.TB, c Config) *System {
	t.Helper()
	s := open(t, c)
	awaitReady(t, s)
	return s
}

func open(t testing.TB, c Config) *System {
	t.Helper()
	if c.Clock == nil {
		c.Clock = func() time.Time { return noon }
	}
	if c.Catalogue == nil {
		c.Catalogue = testCatalogue()
	}
	s, err := Open(c)
	must(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

type panicStops interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

func states(t panicStops, s *System) []engine.SavedCurrency {
	t.Helper()
	all, err := s.States()
	must(t, err)
	return all
}

func observe(t panicStops, s *System, refreshes ...engine.Refresh) engine.Receipt {
	t.Helper()
	receipt, err := s.Observe(refreshes)
	must(t, err)
	return receipt
}

// saying is a refresh of one source with commercial quotes of institutions in one currency.
func saying(source string, at time.Time, currency, buy, sell string, institutions ...string) engine.Refresh {
	r := engine.Refresh{SourceID: source, ObservedAt: at}
	for _, id := range institutions {
		r.Observations = append(r.Observations, engine.Observation{InstitutionID: id, Currency: currency, Buy: buy, Sell: sell})
	}
	return r
}

func best(t panicStops, s *System) string {
	t.Helper()
	page, err := s.Ranking(usdRanking())
	must(t, err)
	if len(page.Items) == 0 {
		return ""
	}
	return page.Items[0].Sell.String()
}

func usdRanking() engine.RankingQuery {
	return engine.RankingQuery{Filter: engine.Filter{Currency: "USD"}, PageRequest: engine.PageRequest{Limit: 10}, Operation: engine.Buy}
}

func isCode(err error, c engine.Code) bool {
	var e *engine.Error
	return errors.As(err, &e) && e.Code == c
}

// withinBubble returns an unexported field of an actor's mailbox: "actor" is the state, "mu" keeps it from being run.
func withinBubble[T any](r *mailbox.Ref, field string) *T {
	return (*T)(unsafe.Pointer(reflect.ValueOf(r).Elem().FieldByName(field).UnsafeAddr()))
}

// stateOf is the state of an actor that is idle, or of which only what never changes is looked at.
func stateOf(r *mailbox.Ref) mailbox.Actor { return *withinBubble[mailbox.Actor](r, "actor") }

// isIdle reports that an actor has done all that was sent to it and does nothing now.
func isIdle(r *mailbox.Ref) bool {
	held := withinBubble[sync.Mutex](r, "mu")
	held.Lock()
	defer held.Unlock()
	return !*withinBubble[bool](r, "running")
}
