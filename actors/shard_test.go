package actors

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tasard/tasard/actors/internal/accounts"
	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/wal"
)

// sweepRounds is how often a load must at least be swept.
const sweepRounds = 20

// evictionLoad asks about members while their actors are put aside all the time. It gives how many
// requests of each were admitted, and how few of them had an actor at some moment.
func evictionLoad(t *testing.T, n *node, members []*testMember, requests int) (admitted []atomic.Int64, overloaded *atomic.Int64, fewest int64) {
	admitted, overloaded, fewest = make([]atomic.Int64, len(members)), &atomic.Int64{}, int64(len(members))
	var rounds atomic.Int64
	stop := make(chan struct{})
	var sweeping, clients sync.WaitGroup
	sweeping.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, shard := range n.accounts.Shards.Refs {
				m := mailbox.NewRequest[accounts.ListQuery, *commitlog.StateSnapshot](accounts.ListQuery{})
				for range accounts.SweepsIdle {
					shard.Send(&accounts.Sweep{})
				}
				shard.Send(m) // keeps the sweeps from piling up
				_, _ = m.Await()
				fewest = min(fewest, n.accounts.Loaded.Load())
			}
			rounds.Add(1)
			runtime.Gosched() // with one processor the clients come to their turn
		}
	})
	for client := range 4 {
		random := rand.New(rand.NewPCG(1, uint64(client)))
		clients.Go(func() {
			for k := 0; k < requests || rounds.Load() < sweepRounds; k++ {
				at := random.IntN(len(members))
				grant, err := n.Admit(account.Caller{Key: members[at].keys[0], HasKey: true})
				switch {
				case isCode(err, engine.CodeOverloaded):
					overloaded.Add(1)
				case err != nil || !grant.Admitted || grant.Account == 0:
					t.Errorf("%+v, %v", grant, err)
				default:
					admitted[at].Add(1)
				}
			}
		})
	}
	clients.Wait()
	close(stop)
	sweeping.Wait()
	return admitted, overloaded, fewest
}

// fastEvictionNode is one whose accounts are idle at once: every look at the monotonic clock is a minute later.
func fastEvictionNode(t *testing.T, c Config, members int) (*node, []*testMember) {
	c.Clock = func() time.Time { return noon }
	var fast atomic.Bool
	looks := paceOf(time.Minute + 1)
	c.Monotonic = func() time.Duration {
		if fast.Load() {
			return looks()
		}
		return 0
	}
	c.QuotaPolicy.DefaultQuota.Day = 100_000
	n := startNode(t, c)
	all := make([]*testMember, members)
	for i := range all {
		all[i] = n.join(i+1, 1)
	}
	fast.Store(true)
	return n, all
}

// Putting accounts aside under load loses no message and no count, nor does a restart afterwards.
func TestEvictionUnderLoadLosesNothing(t *testing.T) {
	for name, c := range map[string]Config{
		"many shards":        {},
		"one shard":          {AccountShards: 1},
		"hardly any room":    {AccountsLoadedMax: 3, AccountShards: 1},
		"every request kept": {QuotaPolicy: account.QuotaPolicy{LeaseSize: 1}, AccountShards: 2},
	} {
		t.Run(name, func(t *testing.T) {
			n, members := fastEvictionNode(t, c, 24)
			admitted, overloaded, fewest := evictionLoad(t, n, members, 400)
			if fewest >= int64(len(members)) {
				t.Error("no account was ever put aside")
			}
			check := func(when string) {
				list, err := n.ListAccounts()
				if err != nil || len(list) != len(members) {
					t.Fatal(list, err)
				}
				for i, one := range list {
					if int64(one.SpentToday) != admitted[i].Load() {
						t.Errorf("%s account %d has spent %d, %d were admitted", when, one.ID, one.SpentToday, admitted[i].Load())
					}
				}
			}
			check("after the load")
			n.restart()
			check("after a restart")
			total := int64(0)
			for i := range admitted {
				total += admitted[i].Load()
			}
			if total < 200 || overloaded.Load() > 0 && c.AccountsLoadedMax == 0 {
				t.Errorf("%d admitted, %d overloaded", total, overloaded.Load())
			}
			t.Logf("%d admitted, %d overloaded, %d of %d accounts live at the fewest", total, overloaded.Load(), fewest, len(members))
		})
	}
}

// An account that counts within its minute, or waits for the disk, is never put aside.
func TestBusyAccountsStay(t *testing.T) {
	n := startNode(t, Config{AccountShards: 1})
	m := n.join(1, 1)
	n.admitted(m.keys[0], 1)
	n.sweepAll()
	if got := n.accounts.Loaded.Load(); got != 1 {
		t.Errorf("%d accounts live, want the one that was asked a moment ago", got)
	}
	n.pass(account.MinuteSpan)
	n.sweepAll()
	if got := n.accounts.Loaded.Load(); got != 0 {
		t.Errorf("%d accounts live, want none", got)
	}
	release := make(chan struct{})
	var held sync.Once
	n.journal.before = func([][]byte) error { held.Do(func() { <-release }); return nil }
	revoked := make(chan error, 1)
	go func() { revoked <- n.RevokeKey(m.token, m.ids[0]) }()
	for n.accounts.Loaded.Load() == 0 {
		countAccounts(t, n.System)
	}
	n.sweepAll()
	if got := n.accounts.Loaded.Load(); got != 1 {
		t.Errorf("%d accounts live, want the one that waits for the disk", got)
	}
	close(release)
	if err := <-revoked; err != nil {
		t.Error(err)
	}
}

// Beyond the cap an account that can't be evicted makes no room.
func TestCapOfLiveAccounts(t *testing.T) {
	n := startNode(t, Config{AccountsLoadedMax: 2, AccountShards: 1})
	var members []*testMember
	for i := range 3 {
		members = append(members, n.join(i+1, 1))
	}
	n.admitted(members[0].keys[0], 1)
	n.admitted(members[1].keys[0], 1)
	_, err := n.Admit(account.Caller{Key: members[2].keys[0], HasKey: true})
	if !isCode(err, engine.CodeOverloaded) {
		t.Errorf("a third account: %v", err)
	}
	n.pass(account.MinuteSpan)
	if got := n.admitted(members[2].keys[0], 1); got != 1 {
		t.Error("no room although the others are idle")
	}
}

// A disk that takes nothing: what is leased is spent, then the answer is read_only, and all is well when
// there is room again.
func TestReadOnlyDiskAndBack(t *testing.T) {
	n := startNode(t, Config{})
	m := n.join(1, 1)
	n.admitted(m.keys[0], 1)
	n.fault(fmt.Errorf("planted: %w", wal.ErrNoSpace))
	admitted, refused := 0, 0
	for range 30 {
		switch grant, err := n.Admit(account.Caller{Key: m.keys[0], HasKey: true}); {
		case err == nil && grant.Admitted:
			admitted++
		case isCode(err, engine.CodeReadOnly):
			refused++
		default:
			t.Fatal(grant, err)
		}
	}
	if admitted != account.LeaseSizeDefault-1 || refused != 30-admitted {
		t.Errorf("%d admitted, %d refused", admitted, refused)
	}
	_, _, err := n.CreateKey(m.token, "second")
	if !isCode(err, engine.CodeReadOnly) || n.RequestCode(m.email, requester(9)) == nil {
		t.Errorf("a key is made on a full disk: %v", err)
	}
	_, err = n.Observe([]engine.Refresh{saying("a", noon, "USD", "57", "61", "popular")})
	if e := accounts.AsEngineError(err); err == nil || e.Code != engine.CodeReadOnly || e.RetryAfter <= 0 {
		t.Errorf("a rate on a full disk: %v, want %s with a Retry-After", err, engine.CodeReadOnly)
	}
	n.fault(nil)
	if got := n.admitted(m.keys[0], 10); got != 10 {
		t.Errorf("%d of 10 admitted when there is room again", got)
	}
	if _, _, err := n.CreateKey(m.token, "second"); err != nil {
		t.Errorf("a key that was lost counts against the limit: %v", err)
	}
	observe(t, n.System, saying("a", noon, "USD", "57", "61", "popular"))
	n.restart()
	if got := best(t, n.System); got != "61" {
		t.Errorf("the best is %q", got)
	}
	if spent := n.spent(m.token); spent != account.LeaseSizeDefault+10 {
		t.Errorf("%d spent", spent)
	}
}

// A node that fails while a snapshot waits for an account's part ends the keeper of snapshots only after that
// account: until then the account may hand it the cut.
func TestClose_WaitsForEveryAccount(t *testing.T) { synctest.Test(t, closeOrder) }

func closeOrder(t *testing.T) {
	n := startNode(t, Config{AccountShards: 1})
	m := n.join(1, 1)
	n.admitted(m.keys[0], 1)
	shard := n.accounts.Shards.Refs[0]
	synctest.Wait()
	if !isIdle(shard) {
		t.Fatal("the shard is still at work")
	}
	var account *mailbox.Ref
	for _, one := range stateOf(shard).(*accounts.ShardActor).Loaded {
		account = &one.Ref
	}
	owed := func(done func(*commitlog.StateSnapshot)) *commitlog.SnapshotRequest {
		c := &commitlog.StateSnapshot{Accounts: [][][]byte{make([][]byte, 1)}, Done: done}
		c.Pending.Store(1)
		return &commitlog.SnapshotRequest{Snapshot: c}
	}
	busy, gone := make(chan struct{}), make(chan any, 1)
	account.Send(owed(func(*commitlog.StateSnapshot) { <-busy }))
	account.Send(owed(func(c *commitlog.StateSnapshot) {
		defer func() { gone <- recover() }()
		n.log.WriteSnapshot(c)
	}))
	n.System.fail(errors.New("the disk is gone"))
	var closing sync.WaitGroup
	closing.Go(n.stop)
	synctest.Wait()
	close(busy)
	closing.Wait()
	if panicked := <-gone; panicked != nil {
		t.Errorf("the cut of an account that ended last: %v", panicked)
	}
}
