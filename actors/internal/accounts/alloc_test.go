//go:build !race

package accounts

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/tasard/tasard/actors/internal/keyindex"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine/account"
)

// Reading the clock, as each request does, allocates nothing.
func TestQ4Clock_AllocatesNothing(t *testing.T) {
	clock := (&twoClocks{wall: noon}).clock()
	if n := testing.AllocsPerRun(100, func() { clock.Now() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestFirstRequest_AllocatesLittle counts what the first request of an account allocates, without the log, whose writes
// many accounts share: the event of its lease, and parts of growing tables.
func TestFirstRequest_AllocatesLittle(t *testing.T) {
	const accounts, allocsMax = 2000, 4
	s := testShard(t)
	for id := uint64(1); id <= accounts; id++ {
		s.add(id, newAccount(t, id))
	}
	next := uint64(0)
	allocs := testing.AllocsPerRun(accounts-1, func() {
		next++
		request := mailbox.NewRequest[admissionQuery, account.Admission](admissionQuery{keyOf(next)})
		acct := s.Accounts[next]
		acct.Ref.Send(request)
		events, _, _ := s.common.outbox.take()
		s.common.outbox.notified = true
		acct.Ref.Deliver(acct.eventWritten(events[0].event, nil))
		if admission, err := request.Await(); err != nil || !admission.Admitted {
			t.Fatal(admission, err)
		}
	})
	const ofTheTest = 3 // the request and its channel, which callers reuse, and the outbox, which many accounts fill
	if allocs -= ofTheTest; allocs > allocsMax {
		t.Errorf("%g allocations, want at most %d", allocs, allocsMax)
	}
}

// testShard is a shard without accounts, with an outbox that notifies no shard.
func testShard(t *testing.T) *ShardActor {
	t.Helper()
	clock := newMonotonicClock(func() time.Time { return noon }, func() time.Duration { return 0 })
	system := mailbox.NewSystem(mailbox.Config{Limit: 64, Workers: 1, Fail: func(err error) { t.Error(err) }})
	t.Cleanup(system.Close)
	return &ShardActor{
		actors: system, kind: &mailbox.Kind{Name: "account", Transient: true}, count: new(atomic.Int64), Accounts: map[uint64]*AccountActor{},
		common: &accountCommon{
			clock: clock, keys: keyindex.New(), queuedMax: 1, outbox: &outbox{flusher: newOutboxFlusher(), notified: true},
			quotaPolicy: account.QuotaPolicy{DefaultQuota: account.DefaultQuota(), LeaseSize: account.LeaseSizeDefault},
		},
	}
}
