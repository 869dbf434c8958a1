package actors

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/wal"
)

// slowJournal lets the test see each append and decide when and how it ends.
type slowJournal struct {
	*memoryJournal
	entered chan int // number of records of an append that waits
	outcome chan error
}

func newSlowJournal() *slowJournal {
	s := &slowJournal{memoryJournal: &memoryJournal{}, entered: make(chan int), outcome: make(chan error)}
	s.before = func(records [][]byte) error {
		s.entered <- len(records)
		return <-s.outcome
	}
	return s
}

func (s *slowJournal) pass() int {
	n := <-s.entered
	s.outcome <- nil
	return n
}

// calls runs Observe in the background, one call for each refresh, and gathers receipts and errors.
type calls struct {
	group    sync.WaitGroup
	receipts []engine.Receipt
	errs     []error
}

func observeSeparately(s *System, refreshes ...engine.Refresh) *calls {
	c := &calls{receipts: make([]engine.Receipt, len(refreshes)), errs: make([]error, len(refreshes))}
	for i, refresh := range refreshes {
		c.group.Go(func() { c.receipts[i], c.errs[i] = s.Observe([]engine.Refresh{refresh}) })
	}
	return c
}

// whenWaiting returns once so many commands wait in a currency's actor behind the one being written. It
// looks by way of messages, so it takes its turn with everything else that the actor does.
func whenWaiting(t *testing.T, s *System, currency string, n int) {
	t.Helper()
	owner := stateOf(s.currencies[currency]).(*currencyActor)
	timeout := time.NewTimer(time.Minute)
	defer timeout.Stop()
	for {
		waiting := make(chan int, 1)
		look := &commitlog.StateSnapshot{Currencies: make([]*engine.CurrencySnapshot, 1), Done: func(*commitlog.StateSnapshot) { waiting <- len(owner.writes.waiting) }}
		look.Pending.Store(1)
		owner.self.Send(&commitlog.SnapshotRequest{Snapshot: look})
		select {
		case found := <-waiting:
			if found >= n {
				return
			}
			runtime.Gosched()
		case <-timeout.C:
			t.Fatalf("%d commands never waited", n)
		}
	}
}

// Reads go on while a write waits, and do not see it; what waits meanwhile is decided as one.
func TestReadsSeeOnlyWhatIsDurable(t *testing.T) {
	journal := newSlowJournal()
	s := start(t, Config{Journal: journal})
	first := observeSeparately(s, saying("a", noon, "USD", "57", "60", "popular"))
	<-journal.entered
	if _, err := s.Ranking(usdRanking()); !isCode(err, engine.CodeDataUnavailable) {
		t.Errorf("before anything is durable: %v", err)
	}
	journal.outcome <- nil
	first.group.Wait()

	at := noon.Add(time.Minute)
	second := observeSeparately(s, saying("a", at, "USD", "57", "61", "popular"))
	<-journal.entered
	third := observeSeparately(s, saying("b", at, "USD", "57", "60.50", "bhd"), saying("d", at, "USD", "57", "60.75", "vimenca"))
	whenWaiting(t, s, "USD", 2)
	if got := best(t, s); got != "60" {
		t.Errorf("while 61 is not durable the best is %s", got)
	}
	journal.outcome <- nil
	second.group.Wait()
	if n := journal.pass(); n != 2 {
		t.Errorf("%d records in the batch of what waited, want 2", n)
	}
	third.group.Wait()
	if got := best(t, s); got != "60.50" {
		t.Errorf("best is %s", got)
	}
}

func TestTooManyWritesAreOverload(t *testing.T) {
	journal := newSlowJournal()
	s := start(t, Config{Journal: journal, PendingWritesMax: 2})
	first := observeSeparately(s, saying("a", noon, "USD", "57", "60", "popular"))
	<-journal.entered
	waiting := observeSeparately(s, saying("b", noon, "USD", "57", "60", "bhd"), saying("c", noon, "USD", "57", "60", "caribe"))
	whenWaiting(t, s, "USD", 2)
	if _, err := s.Observe([]engine.Refresh{saying("d", noon, "USD", "57", "60", "vimenca")}); !isCode(err, engine.CodeOverloaded) {
		t.Errorf("third waiting command: %v, want %s", err, engine.CodeOverloaded)
	}
	journal.outcome <- nil
	journal.pass()
	first.group.Wait()
	waiting.group.Wait()
	if err := errors.Join(append(first.errs, waiting.errs...)...); err != nil {
		t.Error(err)
	}
}

func TestFirstFailureStopsTheNode(t *testing.T) {
	journal := newSlowJournal()
	broken := errors.New("planted")
	s := start(t, Config{Journal: journal})
	first := observeSeparately(s, saying("a", noon, "USD", "57", "60", "popular"))
	journal.pass()
	first.group.Wait()
	at := noon.Add(time.Minute)
	flying := observeSeparately(s, saying("a", at, "USD", "57", "61", "popular"))
	<-journal.entered
	waiting := observeSeparately(s, saying("b", at, "USD", "57", "61", "bhd"), saying("b", at, "EUR", "63", "68", "bhd"))
	whenWaiting(t, s, "USD", 1)
	journal.outcome <- broken
	flying.group.Wait()
	waiting.group.Wait()
	<-s.Done()
	if !errors.Is(s.Err(), broken) {
		t.Errorf("Err is %v, want the cause", s.Err())
	}
	if !isCode(flying.errs[0], engine.CodeInternalError) && !isCode(flying.errs[0], engine.CodeReadOnly) {
		t.Errorf("the write under way: %v", flying.errs[0])
	}
	for _, err := range waiting.errs {
		if !isCode(err, engine.CodeReadOnly) {
			t.Errorf("a waiting write: %v, want %s", err, engine.CodeReadOnly)
		}
	}
	appends := journal.appended()
	if _, err := s.Observe([]engine.Refresh{saying("c", at, "USD", "57", "61", "caribe")}); !isCode(err, engine.CodeReadOnly) {
		t.Errorf("a later write: %v, want %s", err, engine.CodeReadOnly)
	}
	if got := best(t, s); got != "60" {
		t.Errorf("after the stop the best is %s, want what was durable", got)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if journal.appended() != appends {
		t.Error("something was written after the failure")
	}
}

// A journal that another process writes stops the node as well.
func TestForeignWriterStopsTheNode(t *testing.T) {
	journal := &memoryJournal{}
	s := start(t, Config{Journal: journal})
	observe(t, s, saying("a", noon, "USD", "57", "60", "popular"))
	if _, err := journal.Append(1, [][]byte{{1}}); err != nil {
		t.Fatal(err)
	}
	_, err := s.Observe([]engine.Refresh{saying("a", noon, "USD", "57", "61", "popular")})
	<-s.Done()
	if err == nil || !errors.Is(s.Err(), commitlog.ErrPosition) {
		t.Errorf("%v, Err %v, want %v", err, s.Err(), commitlog.ErrPosition)
	}
}

// A refresh with too large a record, and a command with too many records, do not fail the command beside them.
func TestRefreshLargerThanARecordIsRefused(t *testing.T) {
	large, many := saying("b", noon, "USD", "57", "60", "bhd"), []engine.Refresh{}
	for i := range 30_000 {
		large.Observations = append(large.Observations, engine.Observation{InstitutionID: "bhd", Currency: "USD", Buy: fmt.Sprint("x", i), Sell: "60"})
	}
	for i := range wal.BatchBytesMax / engine.BaselineBytesMax {
		refresh := saying(fmt.Sprint("b", i), noon, "USD", "57", "60", "bhd")
		refresh.Slot, refresh.Baseline = noon, strings.Repeat("x", engine.BaselineBytesMax)
		many = append(many, refresh)
	}
	for _, huge := range [][]engine.Refresh{{large}, many} {
		journal := newSlowJournal()
		s := start(t, Config{Journal: journal})
		first := observeSeparately(s, saying("a", noon, "USD", "57", "60", "popular"))
		<-journal.entered
		var err error
		first.group.Go(func() { _, err = s.Observe(huge) })
		beside := observeSeparately(s, saying("c", noon, "USD", "57", "60", "caribe"))
		whenWaiting(t, s, "USD", 2)
		journal.outcome <- nil
		journal.pass()
		first.group.Wait()
		beside.group.Wait()
		if !isCode(err, engine.CodePayloadTooLarge) {
			t.Errorf("%d refreshes: %v, want %s", len(huge), err, engine.CodePayloadTooLarge)
		}
		if beside.errs[0] != nil || s.Err() != nil {
			t.Errorf("beside %d refreshes: %v, Err %v", len(huge), beside.errs[0], s.Err())
		}
	}
}

// TestRefusals_NameTheirPlace: in the call, not in the command of their currency.
func TestRefusals_NameTheirPlace(t *testing.T) {
	s := start(t, Config{Journal: &memoryJournal{}})
	mixed := saying("b", noon, "EUR", "63", "66", "popular", "bhd")
	mixed.Observations = append(mixed.Observations, saying("b", noon, "USD", "0", "60", "popular").Observations...)
	receipt := observe(t, s, saying("a", noon, "EUR", "63", "66", "popular"), mixed)
	if len(receipt.Refused) != 1 || receipt.Refused[0].Refresh != 1 || receipt.Refused[0].Index != 2 {
		t.Errorf("%+v, want refresh 1, observation 2", receipt.Refused)
	}
}

func TestOrders(t *testing.T) {
	journal := &memoryJournal{}
	s := start(t, Config{Journal: journal})
	receipt := observe(t, s, saying("a", noon, "USD", "57", "60", "popular"), saying("a", noon.Add(time.Minute), "USD", "40", "45", "popular", "bhd"))
	if len(receipt.Refused) == 0 {
		t.Fatal("nothing is in quarantine")
	}
	kept, err := s.Quarantine("USD")
	if err != nil || len(kept) != len(receipt.Refused) {
		t.Fatalf("%d held, %v", len(kept), err)
	}
	all, err := s.Quarantine("")
	if err != nil || !reflect.DeepEqual(all, kept) {
		t.Errorf("held in all currencies: %+v, %v", all, err)
	}
	key := engine.QuoteKey{Institution: "popular", Channel: engine.Unspecified, Kind: engine.Commercial}
	for _, one := range []struct {
		currency string
		command  engine.Command
		want     engine.Code
	}{
		{"USD", engine.Reject{QuarantineID: 99}, engine.CodeNotFound},
		{"XXX", engine.Reject{QuarantineID: 1}, engine.CodeNotFound},
		{"USD", engine.Observe{}, engine.CodeInvalidParameters},
		{"USD", nil, engine.CodeInvalidParameters},
		{"USD", engine.Reject{QuarantineID: kept[0].ID, By: "ana"}, ""},
		{"USD", engine.Withdraw{Key: key, SourceID: "a", By: "ana"}, ""},
		{"USD", engine.Withdraw{Key: key, SourceID: "a", By: "ana"}, engine.CodeNotFound},
	} {
		if _, err := s.Execute(one.currency, one.command); one.want == "" && err != nil || one.want != "" && !isCode(err, one.want) {
			t.Errorf("%s %+v: %v, want %q", one.currency, one.command, err, one.want)
		}
	}
	before := states(t, s)
	again := start(t, Config{Journal: journal.crashed()})
	if !reflect.DeepEqual(states(t, again), before) {
		t.Error("the state after a crash is another one")
	}
}

// While nothing is loaded: 2 s while the log replays, 60 s when it is empty, and the catalogue answers
// once it is known that it is.
func TestE4_NothingLoadedYet(t *testing.T) {
	journal := newHeldJournal()
	s := open(t, Config{Journal: journal})
	<-journal.reading
	for name, ask := range everyRequest(s) {
		unavailable(t, "while replaying: "+name, ask(), 2*time.Second)
	}
	_, err := s.Observe(nil)
	unavailable(t, "while replaying: Observe", err, 2*time.Second)
	close(journal.gate)
	<-s.Ready()
	for name, ask := range everyRequest(s) {
		switch err := ask(); name {
		case "Rates", "Ranking", "History":
			unavailable(t, "empty: "+name, err, time.Minute)
		default:
			if err != nil {
				t.Errorf("empty: %s: %v, want an answer from the catalogue", name, err)
			}
		}
	}
	observe(t, s, saying("a", noon, "USD", "57", "60", "popular"))
	for name, ask := range everyRequest(s) {
		if err := ask(); err != nil {
			t.Errorf("with one rate: %s: %v", name, err)
		}
	}
}

func TestE4_RetryAfterFollowsThePace(t *testing.T) {
	p := &progress{began: noon}
	p.total.Store(1000)
	for _, c := range []struct {
		done  uint64
		spent time.Duration
		want  time.Duration
	}{
		{0, time.Second, 2 * time.Second}, {10, 0, 2 * time.Second}, {500, 7 * time.Second, 7 * time.Second},
		{999, time.Minute, time.Second}, {1, time.Minute, 30 * time.Second},
	} {
		p.done.Store(c.done)
		if got := p.retryAfter(noon.Add(c.spent)); got != c.want {
			t.Errorf("%d of 1000 after %s: %s, want %s", c.done, c.spent, got, c.want)
		}
	}
}

// newHeldJournal is an empty journal whose snapshot is not found before the test opens the gate.
func newHeldJournal() *heldJournal {
	return &heldJournal{memoryJournal: &memoryJournal{}, reading: make(chan struct{}), gate: make(chan struct{})}
}

type heldJournal struct {
	*memoryJournal
	reading, gate chan struct{}
}

func (h *heldJournal) Read(from uint64, visit func(uint64, []byte) error) error {
	close(h.reading)
	<-h.gate
	return h.memoryJournal.Read(from, visit)
}

func everyRequest(s *System) map[string]func() error {
	cut := engine.PageRequest{Limit: 10}
	return map[string]func() error{
		"Currencies":   func() error { _, err := s.Currencies(); return err },
		"Institutions": func() error { _, err := s.Institutions(engine.InstitutionsQuery{PageRequest: cut}); return err },
		"Institution":  func() error { _, err := s.Institution("popular"); return err },
		"Rates":        func() error { _, err := s.Rates(engine.RatesQuery{PageRequest: cut}); return err },
		"Ranking":      func() error { _, err := s.Ranking(usdRanking()); return err },
		"History": func() error {
			_, err := s.History(engine.HistoryQuery{PageRequest: cut, From: 1, To: engine.DateOf(noon)})
			return err
		},
		"Quarantine": func() error { _, err := s.Quarantine(""); return err },
	}
}

func unavailable(t *testing.T, what string, err error, retryAfter time.Duration) {
	t.Helper()
	var e *engine.Error
	if !errors.As(err, &e) || e.Code != engine.CodeDataUnavailable || e.RetryAfter != retryAfter {
		t.Errorf("%s: %v, want %s and Retry-After %s", what, err, engine.CodeDataUnavailable, retryAfter)
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	clock := func() time.Time { return noon }
	for name, c := range map[string]Config{
		"no clock": {Dir: "x"}, "no place": {Clock: clock}, "negative": {Dir: "x", Clock: clock, MailboxMax: -1},
		"negative wait": {Dir: "x", Clock: clock, WriteTimeout: -1}, "negative limit": {Dir: "x", Clock: clock, SnapshotRecords: -1},
		"many shards": {Dir: "x", Clock: clock, AccountShards: 257}, "negative clients": {Dir: "x", Clock: clock, AnonymousClientsMax: -1},
	} {
		if _, err := Open(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	c := Config{Dir: t.TempDir(), Clock: clock}
	start(t, c)
	if _, err := Open(c); !errors.Is(err, wal.ErrLocked) {
		t.Errorf("a second system on the directory: %v, want %v", err, wal.ErrLocked)
	}
}

func TestClose(t *testing.T) {
	t.Run("again", func(t *testing.T) {
		s := start(t, Config{Dir: t.TempDir()})
		for range 3 {
			must(t, s.Close())
		}
		<-s.Done()
		if s.Err() != nil {
			t.Errorf("Err after an orderly end: %v", s.Err())
		}
		for name, ask := range everyRequest(s) {
			unavailable(t, "after Close: "+name, ask(), mailbox.ErrStopped.RetryAfter)
		}
		_, err := s.Observe(nil)
		unavailable(t, "after Close: Observe", err, mailbox.ErrStopped.RetryAfter)
	})
	t.Run("while replaying", func(t *testing.T) {
		journal := newHeldJournal()
		s := open(t, Config{Journal: journal})
		<-journal.reading
		var group sync.WaitGroup
		group.Go(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		close(journal.gate)
		group.Wait()
		<-s.Done()
	})
}
