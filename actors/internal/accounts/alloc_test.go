//go:build !race

package accounts

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/internal/keyindex"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
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
	s, events := testShard(t)
	for id := uint64(1); id <= accounts; id++ {
		s.add(id, newAccount(t, id))
	}
	next := uint64(0)
	allocs := testing.AllocsPerRun(accounts-1, func() {
		next++
		request := mailbox.NewRequest[admissionQuery, account.Admission](admissionQuery{keyOf(next)})
		acct := s.Accounts[next]
		acct.Ref.Send(request)
		acct.Ref.Deliver(<-events)
		if admission, err := request.Await(); err != nil || !admission.Admitted {
			t.Fatal(admission, err)
		}
	})
	const ofTheTest = 2 // the request and its channel, which callers reuse
	if allocs -= ofTheTest; allocs > allocsMax {
		t.Errorf("%g allocations, want at most %d", allocs, allocsMax)
	}
}

// testShard is a shard without accounts. The events that its accounts send to it are in the channel.
func testShard(t *testing.T) (*ShardActor, <-chan *eventWrite) {
	t.Helper()
	clock := newMonotonicClock(func() time.Time { return noon }, func() time.Duration { return 0 })
	system := mailbox.NewSystem(mailbox.Config{Limit: 64, Workers: 1, Fail: func(err error) { t.Error(err) }})
	t.Cleanup(system.Close)
	events := make(eventChannel, 1)
	self := &mailbox.Ref{}
	system.Init(self, &mailbox.Kind{Name: "shard"}, events)
	return &ShardActor{
		actors: system, kind: &mailbox.Kind{Name: "account", Transient: true}, count: new(atomic.Int64), Accounts: map[uint64]*AccountActor{},
		common: &accountCommon{
			clock: clock, log: &commitlog.Log{}, keys: keyindex.New(), queuedMax: 1, shard: self, timer: &writeTimer{},
			quotaPolicy: account.QuotaPolicy{DefaultQuota: account.DefaultQuota(), LeaseSize: account.LeaseSizeDefault},
		},
	}, events
}

// eventChannel is an actor that passes on the events that it gets.
type eventChannel chan *eventWrite

func (c eventChannel) Receive(m mailbox.Message) { c <- m.(*eventWrite) }

func (c eventChannel) FailsNode(mailbox.Message) bool { return false }

func (c eventChannel) RejectAll(*engine.Error) {}
