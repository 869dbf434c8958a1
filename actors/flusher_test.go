package actors

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tasard/tasard/actors/internal/accounts"
	"github.com/tasard/tasard/engine/account"
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
