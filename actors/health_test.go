package actors

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
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
	wantState(t, s, "rates", "stale") // the euro still is
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
