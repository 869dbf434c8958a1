//go:build !race

package accounts

import (
	"testing"
	"time"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine/account"
)

// Looking at the clock on the way of a request allocates nothing, also while it is doubted.
func TestQ4Clock_Costs(t *testing.T) {
	c := newTwoClocks(noon, time.Time{})
	c.wall = c.wall.Add(time.Hour)
	c.clock.Now()
	if n := testing.AllocsPerRun(100, func() { c.clock.Now() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestFirstRequest_AllocatesLittle counts what the first request of an account allocates, without the log, whose writes
// many accounts share: the account with its actor and mailbox, the texts of its key, the event of its lease, and parts
// of growing tables.
func TestFirstRequest_AllocatesLittle(t *testing.T) {
	const accounts, allocsMax = 2000, 5
	s := usedShard(t, 0)
	s.common.quotaPolicy = account.QuotaPolicy{DefaultQuota: account.DefaultQuota(), LeaseSize: account.LeaseSizeDefault}
	s.common.queuedMax, s.common.outbox, s.loadedMax = 1, &outbox{flusher: newOutboxFlusher()}, accounts
	for id := uint64(1); id <= accounts; id++ {
		s.evicted[id] = EncodeDurable(newAccount(t, id))
		s.keys.Claim(keyOf(id), id)
	}
	var events []pendingEvent
	next := uint64(0)
	allocs := testing.AllocsPerRun(accounts-1, func() {
		next++
		request := mailbox.NewRequest[admissionQuery, account.Admission](admissionQuery{next, keyOf(next)})
		s.admit(request)
		events = s.common.outbox.take(events[:0])
		s.deliver(events[0], nil)
		if admission, err := request.Await(); err != nil || !admission.Admitted {
			t.Fatal(admission, err)
		}
	})
	const ofTheTest = 2 // the request and its channel, which callers reuse
	if allocs -= ofTheTest; allocs > allocsMax {
		t.Errorf("%g allocations, want at most %d", allocs, allocsMax)
	}
}
