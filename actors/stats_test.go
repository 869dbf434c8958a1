package actors

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/wal"
)

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
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
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
