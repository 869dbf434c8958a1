package actors

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
)

type ratesPage = *engine.Page[*engine.Rate]

func askFor[Q any](t *testing.T, reader *mailbox.Ref, query Q) ratesPage {
	t.Helper()
	q := mailbox.NewRequest[Q, ratesPage](query)
	reader.Send(q)
	page, err := q.Await()
	must(t, err)
	return page
}

func askReader(t *testing.T, reader *mailbox.Ref) (ranking, rates ratesPage) {
	t.Helper()
	return askFor(t, reader, usdRanking()), askFor(t, reader, engine.RatesQuery{PageRequest: engine.PageRequest{Limit: 10}})
}

func startWithReaders(t *testing.T, count int, c Config) *System {
	t.Helper()
	s := start(t, c)
	must(t, s.startReaders(count-len(s.readers)))
	return s
}

// Each reader makes a page once. It gives another one when something has changed or expired, and when the clock was set
// back.
func TestReaders_KeepPages(t *testing.T) {
	clock := &testClock{Now: noon}
	s := startWithReaders(t, 4, Config{Journal: &memoryJournal{}, Clock: clock.Read})
	observe(t, s, saying("a", noon, "USD", "57", "60", "popular", "bhd"))
	last := make([]ratesPage, len(s.readers))
	for _, step := range []struct {
		what   string
		do     func()
		kept   bool
		ranked int
	}{
		{"at first", func() {}, false, 2},
		{"an hour later", func() { clock.advance(time.Hour) }, true, 2},
		{"after a change", func() { observe(t, s, saying("a", noon.Add(time.Hour), "USD", "57", "61", "popular")) }, false, 2},
		{"after the expiry of all", func() { clock.advance(26 * time.Hour) }, false, 0},
		{"after the clock was set back", func() { clock.advance(-26 * time.Hour) }, false, 2},
	} {
		step.do()
		for i, reader := range s.readers {
			ranking, rates := askReader(t, reader)
			if (ranking == last[i]) != step.kept || len(ranking.Items) != step.ranked || rates.Items[0].Stale != (step.ranked == 0) {
				t.Errorf("%s: reader %d: kept %t, %d ranked, stale %t", step.what, i, ranking == last[i], len(ranking.Items), rates.Items[0].Stale)
			}
			if again, all := askReader(t, reader); again != ranking || all != rates {
				t.Errorf("%s: reader %d made a page again", step.what, i)
			}
			last[i] = ranking
		}
	}
}

// Package httpapi keeps the encoded answer in the page, so each query has a page of its own, even an empty one.
func TestReaders_OnePageForEachQuery(t *testing.T) {
	s := startWithReaders(t, 1, Config{Journal: &memoryJournal{}, Clock: (&testClock{Now: noon}).Read})
	buy := usdRanking()
	sell, convert := buy, buy
	sell.Operation, convert.ForConvert = engine.Sell, true
	pages := map[ratesPage]bool{}
	for _, query := range []engine.RankingQuery{buy, sell, convert, buy} {
		pages[askFor(t, s.readers[0], query)] = true
	}
	if len(pages) != 3 {
		t.Errorf("%d pages for 3 queries", len(pages))
	}
}

// The history of all currencies has the rows of every refresh, also of a second one on the same day.
func TestReaders_HistoryOfAllCurrenciesAfterEachRefresh(t *testing.T) {
	clock := &testClock{Now: noon}
	s := startWithReaders(t, 2, Config{Journal: &memoryJournal{}, Clock: clock.Read})
	today := engine.DateOf(noon)
	for i, currency := range []string{"USD", "EUR", "USD"} {
		clock.advance(time.Hour)
		observe(t, s, saying("a", clock.Read(), currency, "57", fmt.Sprint(60+i), "popular"))
		for range 2 * len(s.readers) { // each reader answers
			page, err := s.History(engine.HistoryQuery{PageRequest: engine.PageRequest{Limit: 10}, From: today, To: today})
			isNew := func(e engine.HistoryEntry) bool { return e.Sell.String() == fmt.Sprint(60+i) }
			if err != nil || !slices.ContainsFunc(page.Items, isNew) {
				t.Fatalf("after refresh %d: %v, %v", i+1, page.Items, err)
			}
		}
	}
}

// The pages of a reader stay bounded, however many different questions are asked.
func TestReaders_KeepABoundedNumberOfRows(t *testing.T) {
	s := startWithReaders(t, 1, Config{Journal: &memoryJournal{}})
	observe(t, s, saying("a", noon, "USD", "57", "60", "popular", "bhd"))
	reader := stateOf(s.readers[0]).(*readerActor)
	for cursor := range 3 * pageRowsMax / pageRowsBase {
		askFor(t, s.readers[0], engine.RatesQuery{PageRequest: engine.PageRequest{Limit: 10, Cursor: cursor}})
		if p := &reader.pages; p.rows > pageRowsMax || len(p.rates)*pageRowsBase > p.rows {
			t.Fatalf("after %d questions %d pages of %d rows", cursor+1, len(p.rates), p.rows)
		}
	}
}

func everyInstitution() (all []string) {
	for _, institution := range engine.DefaultCatalogue().Institutions() {
		all = append(all, institution.ID)
	}
	return all
}

// stuckClock blocks its next reader while stick is set.
type stuckClock struct {
	stick   atomic.Bool
	stuck   chan struct{}
	release chan struct{}
}

func (c *stuckClock) read() time.Time {
	if c.stick.CompareAndSwap(true, false) {
		c.stuck <- struct{}{}
		<-c.release
	}
	return noon
}

// F12: however long a currency takes to decide a refresh, readers are answered meanwhile, from what was durable before.
func TestF12_ReadersDoNotWaitForARefresh(t *testing.T) {
	clock := &stuckClock{stuck: make(chan struct{}), release: make(chan struct{})}
	still := func() time.Duration { return 0 } // so that only the currency reads the clock that sticks
	s := start(t, Config{Journal: &memoryJournal{}, Clock: clock.read, Monotonic: still})
	observe(t, s, saying("a", noon, "USD", "57", "60", "popular"))
	if got := best(t, s); got != "60" {
		t.Fatalf("best is %s", got)
	}
	clock.stick.Store(true) // the clock is read to decide
	second := observeSeparately(s, saying("a", noon.Add(time.Minute), "USD", "57", "61", "popular"))
	<-clock.stuck
	if got := best(t, s); got != "60" {
		t.Errorf("while 61 is being decided the best is %s", got)
	}
	clock.release <- struct{}{}
	second.group.Wait()
	if got := best(t, s); got != "61" {
		t.Errorf("after all the best is %s", got)
	}
	snapshot, err := s.snapshot()
	must(t, err)
	for _, currency := range snapshot.Currencies {
		if currency.Currency == "USD" && currency.Saved().SourceQuotes[0].Sell.String() != "61" {
			t.Errorf("the snapshot has %s", currency.Saved().SourceQuotes[0].Sell)
		}
	}
}

// A panic while applying stops the node: commands and snapshot requests are rejected, and what is served stays what it
// was.
func TestF12_NoSnapshotOfAStateThatIsHalfChanged(t *testing.T) {
	failures := &atomic.Int64{}
	s := newActorSystem(10, 2, func(error) { failures.Add(1) })
	t.Cleanup(s.Close)
	ignoring, err := s.Spawn("ignoring", &mailbox.Kind{}, ignoringActor{})
	must(t, err)
	state := engine.NewCurrencyState("USD", engine.DefaultCatalogue(), engine.DefaultRules())
	flying, waiting := mailbox.NewRequest[engine.Command, engine.Receipt](engine.Observe{}), mailbox.NewRequest[engine.Command, engine.Receipt](engine.Observe{})
	owner := &currencyActor{
		clock: func() time.Time { return noon }, log: &commitlog.Log{Ref: ignoring}, board: newBoard([]*engine.CurrencySnapshot{state.Snapshot()}), state: state,
		writes: writes{
			pendingMax: 5, waiting: []*command{waiting},
			inFlight: &writeBatch{[]*command{flying}, []engine.Decision{{Events: []engine.Event{unknownMessage{}}}}},
		},
	}
	if owner.self, err = s.Spawn("USD", &mailbox.Kind{}, owner); err != nil {
		t.Fatal(err)
	}
	before := owner.board.snapshots.Load()
	gone := make(chan *engine.Error, 1)
	snapshot := func() *engine.Error {
		c := &commitlog.StateSnapshot{Currencies: make([]*engine.CurrencySnapshot, 1), Done: func(c *commitlog.StateSnapshot) { gone <- c.Err.Load() }}
		c.Pending.Store(1)
		owner.self.Send(&commitlog.SnapshotRequest{Snapshot: c})
		return <-gone
	}
	owner.self.Send(&commitlog.WriteResult{})
	ends := []*engine.Error{snapshot(), snapshot()} // also after the node has stopped
	late := mailbox.NewRequest[engine.Command, engine.Receipt](engine.Observe{})
	owner.self.Send(late)
	for what, m := range map[string]*command{"flying": flying, "waiting": waiting, "later": late} {
		if _, err := m.Await(); !isCode(err, engine.CodeReadOnly) || strings.Contains(err.Error(), "nearly full") { // it is not full
			t.Errorf("%s command: %v, want %s", what, err, engine.CodeReadOnly)
		}
	}
	owner.self.Stop()
	ignoring.Stop()
	if failures.Load() != 1 || ends[0] == nil || ends[1] == nil || owner.board.snapshots.Load() != before {
		t.Errorf("%d failures; the snapshots ended with %v; another state is served: %v", failures.Load(), ends, owner.board.snapshots.Load() != before)
	}
}

type ignoringActor struct{}

func (ignoringActor) Receive(mailbox.Message)        {}
func (ignoringActor) FailsNode(mailbox.Message) bool { return false }
func (ignoringActor) RejectAll(*engine.Error)        {}

// unknownMessage is an event that no rule applies.
type unknownMessage struct{ engine.Event }

const (
	boardReaders = 5
	boardReads   = 16
	boardWrites  = 10
)

// boardObservation is what a reader found, or a writer published: a number for each publication. Unknown: no answer.
type boardObservation struct {
	write   bool
	number  int
	unknown bool
}

// boardModel is a rate as callers may see it: one register, whichever actor is asked for it.
func boardModel() porcupine.Model {
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{0} },
		Step: func(state, input, output any) []any {
			s, in, out := state.(int), input.(boardObservation), output.(boardObservation)
			switch {
			case in.write && out.unknown:
				return []any{s, in.number}
			case in.write:
				return []any{in.number}
			case out.unknown || out.number == s:
				return []any{s}
			}
			return nil
		},
	}
	return model.ToModel()
}

// sides of the publications: the value tells the number. None jumps.
func sideOf(number int) string { return fmt.Sprintf("59.%06d", number) }

func numberOf(side string) int {
	number := -1
	_, _ = fmt.Sscanf(side, "59.%06d", &number) // -1: not of this test
	return number
}

// boardHistory has one source publish while readers ask in all ways, with a crash in the middle or without.
type boardHistory struct {
	*node
	recorder
	crashed atomic.Bool
	number  int
}

func (h *boardHistory) publish(until int64) {
	h.number++
	h.clock.advance(time.Second)
	in, call := boardObservation{write: true, number: h.number}, h.ticks.Add(1)
	_, err := h.Observe([]engine.Refresh{saying("bhd-site", h.clock.Read(), "USD", "58.00", sideOf(h.number), "bhd")})
	if err != nil || h.crashed.Load() {
		h.note(0, in, boardObservation{unknown: true}, call, until)
		return
	}
	h.note(0, in, in, call, h.ticks.Add(1))
}

// read asks in one of the ways that show the rate: two about one currency, two about all.
func (h *boardHistory) read(who int, random *rand.Rand) {
	one, call := engine.PageRequest{Limit: 1}, h.ticks.Add(1)
	var page *engine.Page[*engine.Rate]
	var err error
	switch random.IntN(4) {
	case 0:
		page, err = h.Ranking(usdRanking())
	case 1:
		page, err = h.Rates(engine.RatesQuery{Filter: engine.Filter{Currency: "USD"}, PageRequest: one})
	case 2:
		page, err = h.Rates(engine.RatesQuery{Filter: engine.Filter{Institution: "bhd"}, PageRequest: one})
	default:
		page, err = h.Rates(engine.RatesQuery{PageRequest: one})
	}
	if err != nil || len(page.Items) == 0 || h.crashed.Load() {
		return // nothing was seen
	}
	h.note(who, boardObservation{}, boardObservation{number: numberOf(page.Items[0].Sell.String())}, call, h.ticks.Add(1))
}

func (h *boardHistory) phase(seed uint64, until int64, crash func()) {
	var all sync.WaitGroup
	all.Go(func() {
		random := rand.New(rand.NewPCG(seed, boardReaders))
		for i := range boardWrites {
			if crash != nil && i == boardWrites/2 {
				crash()
			}
			if h.publish(until); h.crashed.Load() {
				return
			}
			h.read(0, random) // the publisher sees it; on one processor all others may read before or after it
		}
	})
	for who := range boardReaders {
		random := rand.New(rand.NewPCG(seed, uint64(who)))
		all.Go(func() {
			for range boardReads {
				h.read(who+1, random)
			}
		})
	}
	all.Wait()
}

func runBoardHistory(t *testing.T, seed uint64, crash, lazy bool) []porcupine.Operation {
	h := &boardHistory{node: startNode(t, Config{LimitsOff: true})}
	observe(t, h.System, saying("bhd-site", h.clock.Read(), "USD", "58.00", sideOf(0), "bhd"))
	h.journal.setLazy(lazy)
	const infinity = int64(math.MaxInt64 / 2)
	if !crash {
		h.phase(seed, infinity, nil)
		return h.recorder.all
	}
	var image *memoryJournal
	h.phase(seed, infinity/2, func() {
		h.crashed.Store(true)
		image = h.journal.crashed()
	})
	h.stop()
	h.boot(image)
	h.crashed.Store(false)
	h.ticks.Store(infinity/2 + 1)
	h.phase(seed+1, infinity, nil)
	return h.recorder.all
}

func checkBoards(t *testing.T, count int) {
	t.Helper()
	reads, unknown := 0, 0
	for seed := range uint64(count) {
		all := runBoardHistory(t, seed, seed%2 == 0, false)
		for _, op := range all {
			switch out := op.Output.(boardObservation); {
			case out.unknown:
				unknown++
			case !out.write:
				reads++
			}
		}
		if got := porcupine.CheckOperationsTimeout(boardModel(), all, time.Minute); got != porcupine.Ok {
			t.Fatalf("history %d of the board is %s:\n%+v", seed, got, all)
		}
	}
	t.Logf("FIGURE %d histories of publications, half of them with a crash: %d reads, %d publications without an answer", count, reads, unknown)
	if reads == 0 || unknown == 0 {
		t.Error("nothing was read, or no publication was cut off")
	}
}

// Once a publication is acknowledged no caller sees an older rate, whether of the currency or of all. Nor does a caller
// see an older rate after another has seen a newer one.
func TestQ1_PublishedRatesAreLinearizable(t *testing.T) { checkBoards(t, 20) }

// A journal that acknowledges before it keeps shows an older rate after a crash.
func TestQ1_Control_OlderRateIsIllegal(t *testing.T) {
	for seed := range uint64(histories) {
		if porcupine.CheckOperationsTimeout(boardModel(), runBoardHistory(t, seed, true, true), time.Minute) == porcupine.Illegal {
			return
		}
	}
	t.Error("a journal that acknowledges before it keeps is not caught")
}
