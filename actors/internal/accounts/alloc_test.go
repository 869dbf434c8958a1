//go:build !race

package accounts

import (
	"testing"
	"time"

	"github.com/tasard/tasard/actors/internal/commitlog"
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
		request := mailbox.NewRequest[account.Digest, account.Admission](keyOf(next))
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
	parent := &Accounts{clock: clock, keys: newKeyIndex(), timer: &writeTimer{}, config: Config{
		MailboxMax: 1, QuotaPolicy: account.QuotaPolicy{DefaultQuota: account.DefaultQuota(), LeaseSize: account.LeaseSizeDefault},
	}}
	parent.Kinds.Account.Transient = true
	return &ShardActor{parent: parent, actors: system, log: &commitlog.Log{}, self: self, Accounts: map[uint64]*AccountActor{}}, events
}

// eventChannel is an actor that passes on the events that it gets.
type eventChannel chan *eventWrite

func (c eventChannel) Receive(m mailbox.Message) { c <- m.(*eventWrite) }

func (c eventChannel) FailsNode(mailbox.Message) bool { return false }

func (c eventChannel) RejectAll(*engine.Error) {}
