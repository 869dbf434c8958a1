package actors

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tasard/tasard/actors/internal/accounts"
	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/wal"
)

// Leases that are asked for in time share one write, however many accounts ask; one for which a request waits is
// written at once, with the others.
func TestF1_LeasesAreGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many, early = 40, 9 // requests, of a lease of 16
		const few = 3             // writes; each shard on its own would need 8
		n := startNode(t, Config{})
		var members []*testMember
		for number := range many {
			members = append(members, n.join(number, 1))
			n.admit(members[number].keys[0])
		}
		synctest.Wait()
		before := n.journal.appended()
		begun := time.Now() //nolint:forbidigo // the bubble's
		for _, m := range members {
			n.admitted(m.keys[0], early-1)
		}
		synctest.Wait()
		if got := n.journal.appended(); got != before {
			t.Fatalf("%d writes while no request waited", got-before)
		}
		n.admitted(members[0].keys[0], account.LeaseSizeDefault-early+1) // one more than its lease has
		if waited := time.Since(begun); waited != 0 {                    //nolint:forbidigo // the bubble's
			t.Errorf("a request waited %s for its lease", waited)
		}
		synctest.Wait()
		pressed := n.journal.appended()
		if pressed == before || pressed > before+few {
			t.Errorf("%d writes when one waited, want 1 to %d", pressed-before, few)
		}
		<-time.NewTimer(2 * accounts.FlushDelay).C
		synctest.Wait()
		if got := n.journal.appended(); got > pressed+few {
			t.Errorf("%d writes for the leases of %d accounts, want 1 to %d", got-pressed, many-1, few)
		}
		// All accounts have a lease again: no request waits, and nothing is written for seven requests more.
		gathered := n.journal.appended()
		for _, m := range members[1:] {
			n.admitted(m.keys[0], 7)
		}
		if got := n.journal.appended(); got != gathered {
			t.Errorf("%d writes for requests whose leases were asked for long ago", got-gathered)
		}
		n.stop()
	})
}

// First requests that come while a write is under way share the next one, whatever their shards are.
func TestF1_FirstRequestsShareAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many, few = 200, 6 // each shard on its own would need 8
		slow := func([][]byte) error {
			<-time.NewTimer(time.Millisecond).C // until all goroutines of the bubble wait
			return nil
		}
		n := startNode(t, Config{Journal: &memoryJournal{before: slow}})
		var keys []account.Digest
		for number := range many {
			keys = append(keys, n.join(number, 1).keys[0])
		}
		synctest.Wait()
		before := n.journal.appended()
		var callers sync.WaitGroup
		for _, key := range keys {
			callers.Go(func() { n.admit(key) })
		}
		callers.Wait()
		if got := n.journal.appended() - before; got > few {
			t.Errorf("%d writes for the first requests of %d accounts, want at most %d", got, many, few)
		}
		n.stop()
	})
}

// An account that is about to use up its lease does not wait for the end of the delay. Nor do the others.
func TestF1_AFastAccountEndsTheDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startNode(t, Config{})
		fast, slow := n.join(1, 1).keys[0], n.join(2, 1).keys[0]
		n.admitted(fast, 11)
		n.admitted(slow, 9)
		synctest.Wait()
		before := n.journal.appended()
		n.admitted(fast, 1) // four are left, an eighth of the lease that it asks for
		synctest.Wait()
		if got := n.journal.appended() - before; got < 1 || got > 2 {
			t.Errorf("%d writes for the leases of two accounts", got)
		}
		written := n.journal.appended()
		<-time.NewTimer(2 * accounts.FlushDelay).C
		synctest.Wait()
		if got := n.journal.appended(); got != written {
			t.Errorf("%d writes after the delay", got-written)
		}
		n.stop()
	})
}

// grantNode is a node with one shard and keys of so many accounts. snapshotRecords is Config.SnapshotRecords.
func grantNode(t *testing.T, accounts, snapshotRecords int) (*node, []*testMember) {
	t.Helper()
	n := startNode(t, Config{AccountShards: 1, SnapshotRecords: snapshotRecords})
	members := make([]*testMember, accounts)
	for i := range members {
		members[i] = n.join(i+1, 1)
	}
	return n, members
}

// wantSpent compares what accounts have spent of the day.
func wantSpent(t *testing.T, n *node, when string, members []*testMember, want ...int) {
	t.Helper()
	for i, m := range members {
		if m.token = login(t, n.System, n.mail, m.email, client(100+i)); n.spent(m.token) != want[i] {
			t.Errorf("%s: account %d has spent %d, want %d", when, i+1, n.spent(m.token), want[i])
		}
	}
	n.pass(2 * time.Minute) // so that codes can be asked for again
}

// grants are those in the log.
func (n *node) grants(t *testing.T) (grants []account.DayGranted) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, data := range n.all {
		_, events, err := new(record.Decoder).Events(data)
		must(t, err)
		for _, event := range events {
			if e, is := event.(*account.DayGranted); is {
				grants = append(grants, *e)
			}
		}
	}
	return grants
}

func (n *node) recordCount() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.all)
}

// The first request of an account on a day makes a grant for its shard. The first requests of the other accounts then
// need no record.
func TestL1_GrantOfADay_OneRecord(t *testing.T) {
	n, members := grantNode(t, 3, 0)
	n.admitted(members[0].keys[0], 1)
	countAccounts(t, n.System) // the shard has taken the result of its write
	before := n.recordCount()
	if got := n.admitted(members[1].keys[0], 7) + n.admitted(members[2].keys[0], 7); got != 14 || n.recordCount() != before {
		t.Errorf("%d of 14 admitted, with %d records", got, n.recordCount()-before)
	}
	if got := n.admitted(members[1].keys[0], 20); got != 20 {
		t.Errorf("%d of 20 admitted with more than the grant", got)
	}
	want := account.DayGranted{Shards: 1, Day: engine.DateOf(noon), Size: account.LeaseSizeDefault}
	got := n.grants(t)
	if len(got) != 1 {
		t.Fatalf("%+v", got)
	}
	if got[0].Monotonic = 0; got[0] != want {
		t.Errorf("%+v, want %+v", got[0], want)
	}
}

// After a crash each account without an event of the day counts the grant as spent, whether or not a snapshot has it.
func TestL1_GrantOfADay_CrashCostsALease(t *testing.T) {
	for name, snapshotRecords := range map[string]int{"log": 0, "snapshot": 1} {
		n, members := grantNode(t, 3, snapshotRecords)
		n.admitted(members[0].keys[0], 2)
		countAccounts(t, n.System)
		n.admitted(members[1].keys[0], 3)
		n.crash()
		n.pass(2 * time.Minute)
		const lease = account.LeaseSizeDefault
		wantSpent(t, n, name, members, lease, lease, lease)
		if got := n.admitted(members[1].keys[0], 1); got != 1 {
			t.Errorf("%s: nothing is admitted after the crash", name)
		}
		n.crash()
		n.pass(2 * time.Minute)
		wantSpent(t, n, name+", again", members, lease, 2*lease, lease)
	}
}

// A clean stop writes what accounts have spent of the grant, and takes the grant back.
func TestL1_GrantOfADay_CleanStopCostsNothing(t *testing.T) {
	n, members := grantNode(t, 3, 0)
	n.admitted(members[0].keys[0], 2)
	countAccounts(t, n.System)
	n.admitted(members[1].keys[0], 3)
	n.restart()
	n.pass(2 * time.Minute)
	wantSpent(t, n, "stopped", members, 2, 3, 0)
	n.crash()
	n.pass(2 * time.Minute)
	wantSpent(t, n, "crashed without a grant", members, 2, 3, 0)
	n.admitted(members[2].keys[0], 1)
	n.restart()
	wantSpent(t, n, "stopped again", members, 2, 3, 1)
	got := n.grants(t)
	if len(got) != 4 || got[0].TakenBack || !got[1].TakenBack || got[2].TakenBack || !got[3].TakenBack {
		t.Errorf("%+v", got)
	}
}

// A grant is not taken back at a stop whose returns fail: no record has what accounts have spent of it.
func TestL1_GrantOfADay_FailedReturnsKeepIt(t *testing.T) {
	var n *node
	var fails atomic.Bool
	n = startNode(t, Config{AccountShards: 1, Journal: &memoryJournal{before: func(records [][]byte) error {
		if fails.CompareAndSwap(true, false) {
			return wal.ErrNoSpace
		}
		return n.keep(records)
	}}})
	m := n.join(1, 1)
	n.admitted(m.keys[0], 2)
	countAccounts(t, n.System)
	fails.Store(true)
	n.restart()
	if got := n.grants(t); len(got) != 1 || fails.Load() {
		t.Errorf("%+v", got)
	}
	n.pass(2 * time.Minute)
	wantSpent(t, n, "after the stop", []*testMember{m}, account.LeaseSizeDefault)
}

// The minute counts what may have been spent of a grant just before a crash.
func TestL2_GrantOfADay_CrashKeepsTheMinute(t *testing.T) {
	n := startNode(t, Config{AccountShards: 1, QuotaPolicy: account.QuotaPolicy{DefaultQuota: account.Quota{Day: 1000, Minute: 16}, LeaseSize: 16}})
	first, second := n.join(1, 1), n.join(2, 1)
	n.admitted(first.keys[0], 1)
	countAccounts(t, n.System)
	n.admitted(second.keys[0], 7)
	n.crash()
	if got := n.admitted(second.keys[0], 1); got != 0 {
		t.Error("a request is admitted right after a crash with a grant in use")
	}
	n.pass(time.Minute)
	if got := n.admitted(second.keys[0], 17); got != 16 {
		t.Errorf("%d of 17 admitted a minute later", got)
	}
}
