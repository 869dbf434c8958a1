package actors

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/wal"
)

// The promise of S15: how soon a fault shows, and how soon its end.
const (
	showsWithin = time.Second
	goesWithin  = 5 * time.Second
)

func bubbleNow() time.Time { return time.Now() } //nolint:forbidigo // the clock of the bubble

func after(span time.Duration) {
	<-time.NewTimer(span).C
	synctest.Wait()
}

func state(s engine.Health, name string) string {
	for _, c := range s.Conditions() {
		if c.Name == name {
			return c.State
		}
	}
	return ""
}

func wantState(t *testing.T, s engine.Health, name, want string) {
	t.Helper()
	if got := state(s, name); got != want {
		t.Errorf("%s is %q, want %q", name, got, want)
	}
}

// staysOut wants a condition well for longer than it would take to come back.
func staysOut(t *testing.T, s engine.Health, name string) {
	t.Helper()
	for range 40 {
		wantState(t, s, name, engine.ConditionOK)
		after(100 * time.Millisecond)
	}
}

// fullDiskJournal is a memoryJournal on a disk with so much room.
type fullDiskJournal struct {
	*memoryJournal
	room atomic.Int64
}

func newFullDiskJournal(room int64) *fullDiskJournal {
	j := &fullDiskJournal{memoryJournal: &memoryJournal{}}
	j.room.Store(room)
	j.before = func([][]byte) error { return j.CheckSpace(0) }
	j.around = func(what string) error {
		if what == "snapshot" {
			return j.CheckSpace(1 << 19)
		}
		return nil
	}
	return j
}

func (j *fullDiskJournal) CheckSpace(bytes int64) error {
	if bytes > j.room.Load() {
		return wal.ErrNoSpace
	}
	return nil
}

func TestS15_ReadOnlyComesAndGoesByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := newFullDiskJournal(1 << 30)
		s := start(t, Config{Journal: disk, Clock: bubbleNow})
		staysOut(t, s, "disk")
		disk.room.Store(-1) // no writes
		after(showsWithin)
		wantState(t, s, "disk", "read_only")
		for i := range 100 { // space comes and goes: it does not flap
			disk.room.Store(int64(i%2)*(1<<30) - 1)
			after(700 * time.Millisecond)
			wantState(t, s, "disk", "read_only")
		}
		disk.room.Store(1 << 30)
		after(goesWithin)
		staysOut(t, s, "disk")
	})
}

func TestS15_SlowDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := newSlowJournal()
		s := start(t, Config{Journal: disk, Clock: bubbleNow})
		first := observeSeparately(s, saying("a", bubbleNow(), "USD", "57", "60", "popular"))
		<-disk.entered
		after(900 * time.Millisecond)
		wantState(t, s, "disk", engine.ConditionOK)
		after(showsWithin)
		wantState(t, s, "disk", "slow")
		began := s.Conditions()[2].Since
		disk.outcome <- nil
		first.group.Wait()
		after(500 * time.Millisecond) // a pause between two slow ones does not end it
		wantState(t, s, "disk", "slow")
		second := observeSeparately(s, saying("a", bubbleNow(), "USD", "57", "61", "popular"))
		<-disk.entered
		after(2 * time.Second)
		wantState(t, s, "disk", "slow")
		if since := s.Conditions()[2].Since; !since.Equal(began) {
			t.Errorf("slow since %s, and before since %s", since, began)
		}
		disk.outcome <- nil
		second.group.Wait()
		after(goesWithin)
		staysOut(t, s, "disk")
	})
}

func TestS15_SnapshotFailingIsTriedAgainWhenThereIsSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := newFullDiskJournal(1 << 18)
		s := start(t, Config{Journal: disk, Clock: bubbleNow, SnapshotRecords: 1})
		observe(t, s, saying("a", bubbleNow(), "USD", "57", "60", "popular"))
		after(showsWithin)
		wantState(t, s, "snapshot", "failing")
		after(time.Minute)
		wantState(t, s, "snapshot", "failing")
		disk.room.Store(1 << 30)
		after(goesWithin)
		staysOut(t, s, "snapshot")
		if _, _, taken, _ := disk.Snapshot(); !taken {
			t.Error("no snapshot was taken")
		}
	})
}

func TestS15_RecoveringEmptyAndFailed(t *testing.T) {
	journal := newHeldJournal()
	s := open(t, Config{Journal: journal})
	<-journal.reading
	wantState(t, s, "log", "recovering")
	if got := engine.ReadinessOf(s.Conditions()); got != engine.Unavailable {
		t.Errorf("%s while the log is read", got)
	}
	close(journal.gate)
	<-s.Ready()
	wantState(t, s, "log", engine.ConditionOK)
	wantState(t, s, "data", "empty")
	observe(t, s, saying("a", noon, "USD", "57", "60", "popular"))
	wantState(t, s, "data", engine.ConditionOK)
	if got := engine.ReadinessOf(s.Conditions()); got != engine.Ready {
		t.Errorf("%s with rates: %+v", got, s.Conditions())
	}
	s.fail(errors.New("planted"))
	wantState(t, s, "log", "failed")
	if got := engine.ReadinessOf(s.Conditions()); got != engine.Unavailable {
		t.Errorf("%s after a failure", got)
	}
}

func TestS15_StaleRates(t *testing.T) {
	var offset atomic.Int64
	clock := func() time.Time { return noon.Add(time.Duration(offset.Load())) }
	s := start(t, Config{Journal: &memoryJournal{}, Clock: clock})
	observe(t, s, saying("a", noon, "USD", "57", "60", "popular"), saying("a", noon, "EUR", "63", "66", "popular"))
	wantState(t, s, "rates", engine.ConditionOK)
	offset.Store(int64(engine.LifetimeDefault))
	wantState(t, s, "rates", "stale")
	observe(t, s, saying("a", clock(), "USD", "57", "60", "popular"))
	observe(t, s, saying("a", clock(), "EUR", "63", "66", "bancamerica"))
	wantState(t, s, "rates", "stale") // the euro still is: the rate of an inactive institution is not served
	observe(t, s, saying("a", clock(), "EUR", "63", "66", "popular"))
	wantState(t, s, "rates", engine.ConditionOK)
}

// Health needs no actor: it is answered while every actor is busy.
func TestS15_BusyActorsAreNotAsked(t *testing.T) {
	s := start(t, Config{Journal: &memoryJournal{}})
	for _, r := range slices.Concat([]*mailbox.Ref{s.log.Ref}, s.kinds.currency.Refs(), s.readers) {
		held := withinBubble[sync.Mutex](r, "mu")
		held.Lock()
		defer held.Unlock()
	}
	if got := len(s.Conditions()); got != 6 {
		t.Errorf("%d conditions", got)
	}
}

func mailboxOf(t *testing.T, s *System, kind string) mailbox.Stats {
	t.Helper()
	for _, m := range s.Stats().Mailboxes {
		if m.Kind == kind {
			return m
		}
	}
	t.Fatalf("no kind %q in %+v", kind, s.Stats().Mailboxes)
	return mailbox.Stats{}
}

// stall keeps a currency's actor at work until release is called.
func stall(s *System, currency string) (release func()) {
	entered, end := make(chan struct{}), make(chan struct{})
	look := &commitlog.StateSnapshot{Currencies: make([]*engine.CurrencySnapshot, 1), Done: func(*commitlog.StateSnapshot) { close(entered); <-end }}
	look.Pending.Store(1)
	s.currencies[currency].Send(&commitlog.SnapshotRequest{Snapshot: look})
	<-entered
	return func() { close(end) }
}

// TestStats_Mailboxes: messages that wait are counted, by kind and for the fullest actor, requests that find no room
// too, and nothing is left when they were answered. Messages that an idle actor handles at once have not waited.
func TestStats_Mailboxes(t *testing.T) {
	s := start(t, Config{Journal: &memoryJournal{}, MailboxMax: 3})
	observe(t, s, saying("a", noon, "USD", "57", "60", "popular"))
	if got := mailboxOf(t, s, "currency"); got != (MailboxStats{Kind: "currency"}) {
		t.Errorf("nothing waits: %+v", got)
	}
	releases := []func(){stall(s, "USD"), stall(s, "EUR")}
	var asking sync.WaitGroup
	ask := func(currency string) {
		asking.Go(func() {
			if _, err := s.Execute(currency, engine.Withdraw{SourceID: "none"}); !isCode(err, engine.CodeNotFound) {
				t.Error(err)
			}
		})
	}
	for _, currency := range []string{"USD", "USD", "USD", "EUR"} {
		ask(currency)
	}
	for mailboxOf(t, s, "currency").Waiting < 4 {
		runtime.Gosched()
	}
	for range 2 {
		if _, err := s.Execute("USD", engine.Withdraw{}); !isCode(err, engine.CodeOverloaded) {
			t.Errorf("a full mailbox: %v", err)
		}
	}
	if got, want := mailboxOf(t, s, "currency"), (MailboxStats{Kind: "currency", Waiting: 4, WaitingMax: 3, Rejected: 2}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, release := range releases {
		release()
	}
	asking.Wait()
	if got, want := mailboxOf(t, s, "currency"), (MailboxStats{Kind: "currency", Waiting: 0, WaitingMax: 0, Rejected: 2}); got != want {
		t.Errorf("all answered: %+v, want %+v", got, want)
	}
	if got := mailboxOf(t, s, "account"); got.WaitingMax != -1 {
		t.Errorf("accounts are too many to look at: %+v", got)
	}
}

func TestStats_Accounts(t *testing.T) {
	n := startNode(t, Config{AccountShards: 2})
	if got := n.Stats(); !got.Serving || got.Accounts != 0 || got.Leases != 0 {
		t.Errorf("without an account: %+v", got)
	}
	first := n.join(1, 1)
	n.join(2, 1)
	n.admitted(first.keys[0], 1)
	if got := n.Stats(); got.Accounts != 2 || got.Leases != 1 {
		t.Errorf("two accounts, one of which asked once: %d, %d leases", got.Accounts, got.Leases)
	}
	n.restart()
	if got := n.Stats(); got.Accounts != 2 || got.Leases != 0 {
		t.Errorf("after a restart: %d accounts, %d leases", got.Accounts, got.Leases)
	}
	n.fault(wal.ErrNoSpace)
	if _, err := n.Admit(account.Caller{Key: first.keys[0], HasKey: true}); err == nil {
		t.Error("a lease that can't be kept was spent")
	}
	if got := n.Stats().Leases; got != 0 {
		t.Errorf("%d leases that are not on disk", got)
	}
	n.fault(nil)
}

// TestStats_Currencies checks when each currency was last checked, and until when it is fresh, also after a start.
func TestStats_Currencies(t *testing.T) {
	journal := &memoryJournal{}
	s := start(t, Config{Journal: journal})
	observe(t, s, saying("a", noon.Add(-time.Hour), "USD", "57", "60", "popular"), saying("b", noon, "USD", "57", "60", "bhd"))
	want := CurrencyStats{"USD", noon.UTC(), noon.Add(engine.LifetimeDefault).UTC()}
	check := func(s *System) {
		t.Helper()
		for _, c := range s.Stats().Currencies {
			if c.Currency == "USD" && c != want {
				t.Errorf("%+v, want %+v", c, want)
			}
			if c.Currency == "EUR" && (!c.CheckedAt.IsZero() || !c.FreshUntil.IsZero()) {
				t.Errorf("a currency without rates: %+v", c)
			}
		}
	}
	check(s)
	must(t, s.Close())
	if got := s.Stats(); got.Serving || len(got.Currencies) > 0 || got.HasLog {
		t.Errorf("stopped, and without a log: %+v", got)
	}
	check(start(t, Config{Journal: journal}))
}

func TestStats_Log(t *testing.T) {
	s := start(t, Config{Dir: t.TempDir()})
	observe(t, s, saying("a", noon, "USD", "57", "60", "popular"))
	if got := s.Stats(); !got.HasLog || got.Log.Batches != 1 || got.Log.Records == 0 || got.Log.LogBytes == 0 {
		t.Errorf("%+v", got)
	}
}
