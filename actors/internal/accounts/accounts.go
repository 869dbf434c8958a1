package accounts

import (
	"fmt"
	"hash/maphash"
	"io"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// Accounts runs one node's actors for accounts, logins and anonymous clients.
type Accounts struct {
	config        Config
	clock         *monotonicClock
	Node          engine.NodeID // 0 without a cluster
	Majority      commitlog.Majority
	LoginCodeKey  [32]byte  // secret for hashing login codes: random, or set by ShareCodes
	SharedCodes   bool      // a login code works on every node of the cluster
	keys          *keyIndex // the accounts' actors by API key
	keyPolicy     atomic.Pointer[account.KeyPolicy]
	codesUsedUp   atomic.Pointer[account.CodesUsedUp]
	Count         atomic.Int64  // number of accounts
	Leases        atomic.Uint64 // number of quota leases written by this process
	requestPools  requestPools
	journalHealth *commitlog.Health // set by Start
	calls         sync.WaitGroup    // goroutines of ShardActor.ask
	asking        atomic.Int64      // number of these
	Kinds         struct{ Shard, Account, Registrar, Anonymous mailbox.Kind }

	// Start sets these fields. They do not change afterwards.
	Shards        []*mailbox.Ref
	Registrar     *mailbox.Ref
	anonymous     []*mailbox.Ref // none if LimitsOff
	anonymousSeed maphash.Seed   // random, so that clients cannot fill one table with chosen addresses
	timer         *writeTimer
}

type requestPools struct {
	admissions mailbox.RequestPool[account.Digest, account.Admission]
	anonymous  mailbox.RequestPool[netip.Addr, account.Admission]
	refunds    mailbox.RequestPool[account.Admission, struct{}]
	usages     mailbox.RequestPool[account.Digest, account.QuotaResult]
	sessions   mailbox.RequestPool[account.Digest, uint64]
}

// New returns Accounts without starting the actors.
func New(c Config) (*Accounts, error) {
	t := &Accounts{config: c, clock: newMonotonicClock(c.Clock, c.Monotonic), keys: newKeyIndex(), anonymousSeed: maphash.MakeSeed(), timer: &writeTimer{}}
	t.Kinds.Shard.Name, t.Kinds.Shard.Reserve = "shard", EventsMax
	t.Kinds.Account.Name, t.Kinds.Account.Transient = "account", true
	t.Kinds.Registrar.Name, t.Kinds.Anonymous.Name = "registrar", "anonymous"
	t.Kinds.Registrar.Reserve = c.MailboxMax + mailbox.ReserveDefault // results of all pending decisions
	t.keyPolicy.Store(&account.KeyPolicy{})
	t.codesUsedUp.Store(&account.CodesUsedUp{})
	if _, err := io.ReadFull(c.Random, t.LoginCodeKey[:]); err != nil {
		return nil, fmt.Errorf("read random bytes: %w", err)
	}
	return t, nil
}

// LoginsCondition reports whether requests are refused because the hour's maximum of login codes was issued.
func (t *Accounts) LoginsCondition(now time.Time) engine.Condition {
	usedUp := t.codesUsedUp.Load()
	if !now.Before(usedUp.Until) {
		return engine.HealthyCondition("logins")
	}
	whom := "addresses that have an account"
	if usedUp.Newcomers {
		whom = "addresses without an account"
	}
	return engine.Condition{
		Name: "logins", State: "codes_used_up", Since: usedUp.Since.Round(0).UTC(),
		Detail: "Too many login codes were asked for, so " + whom + " get none at present. Look in the access log for networks that ask for many; " +
			"tasard admin accounts unlock ADDRESS lets all addresses ask again.",
	}
}

// ShareCodes sets the cluster's secret for checking login codes. Call it before the replay.
func (t *Accounts) ShareCodes(loginCodeKey []byte) error {
	if len(loginCodeKey) != len(t.LoginCodeKey) {
		return fmt.Errorf("the login-code key of the cluster has %d bytes, want %d", len(loginCodeKey), len(t.LoginCodeKey))
	}
	t.SharedCodes = true
	copy(t.LoginCodeKey[:], loginCodeKey)
	return nil
}

func (t *Accounts) shardOf(account uint64) *mailbox.Ref {
	return t.Shards[account%uint64(len(t.Shards))]
}

// accountBytesEstimate is the estimated size of an account in a snapshot.
const accountBytesEstimate = 150

// Start starts the actors with the state from a finished replay of the log.
func (t *Accounts) Start(actors *mailbox.System, r *Replay, log *commitlog.Log) error {
	t.journalHealth = log.Health
	t.clock.resume(r.monotonic)
	t.keyPolicy.Store(&r.KeyPolicy)
	r.finish(t.Node, t.clock.start())
	shards := make([]*ShardActor, t.config.Shards)
	for i := range shards {
		var err error
		if shards[i], err = t.spawnShard(actors, i, log); err != nil {
			return err
		}
		shards[i].grants.Store(r.grants)
	}
	if err := t.addAccounts(shards, r.Accounts); err != nil {
		return err
	}
	var err error
	registrar := &RegistrarActor{parent: t, log: log, registry: r.Registry}
	if t.Registrar, err = actors.Spawn("registrar", &t.Kinds.Registrar, registrar); err != nil {
		return err
	}
	registrar.self = t.Registrar
	log.SetAccounts(t.Shards, t.Registrar, t.Count.Load()*accountBytesEstimate)
	if !t.config.LimitsOff {
		if err := t.startAnonymous(actors); err != nil {
			return err
		}
	}
	if t.timer.shards = t.Shards; t.Node != 0 {
		t.timer.checkReturns()
	}
	return nil
}

func (t *Accounts) spawnShard(actors *mailbox.System, index int, log *commitlog.Log) (*ShardActor, error) {
	shard := &ShardActor{
		parent: t, actors: actors, log: log, index: uint64(index),
		Accounts: map[uint64]*AccountActor{}, writes: map[*commitlog.Write]*eventWrite{},
	}
	ref, err := actors.Spawn(fmt.Sprintf("accounts-%d", index), &t.Kinds.Shard, shard)
	shard.self, t.Shards = ref, append(t.Shards, ref)
	return shard, err
}

// addAccounts starts the actors of the replayed accounts. The shards have not received a message yet.
func (t *Accounts) addAccounts(shards []*ShardActor, all map[uint64]*account.Account) error {
	for id, state := range all {
		acct := shards[id%uint64(len(shards))].add(id, state)
		known := true
		state.EachKey(func(key account.Digest) { known = t.keys.add(key, &acct.Ref) && known })
		if !known {
			return fmt.Errorf("two accounts have a key with the same fingerprint, one of them is account %d", id)
		}
	}
	return nil
}

// ReturnLeases makes every account return the unspent part of its quota lease. It waits up to the timeout for all
// shards. The caller must send no more requests.
func (t *Accounts) ReturnLeases(timeout time.Duration) {
	defer t.timer.stop()
	var requests []*drainRequest
	for _, shard := range t.Shards {
		m := mailbox.NewRequest[struct{}, struct{}](struct{}{})
		requests = append(requests, m)
		shard.Send(m)
	}
	end := t.clock.Now().Monotonic + timeout
	for _, m := range requests {
		_, _ = m.Wait(end - t.clock.Now().Monotonic) // after an error the unspent quota is lost, as after a crash
	}
}

// Stop stops the actors and waits for them. They reject unanswered requests.
func (t *Accounts) Stop() {
	for _, shard := range t.Shards {
		shard.Stop()
	}
	t.calls.Wait()
	t.Registrar.Stop()
	for _, anonymous := range t.anonymous {
		anonymous.Stop()
	}
}

// Config configures Accounts. Package actors sets these fields from actors.Config, where they are explained.
type Config struct {
	Clock                        func() time.Time
	Monotonic                    func() time.Duration
	Random                       io.Reader
	Mail                         func(account.LoginMail) error
	KeyPrefix                    string
	QuotaPolicy                  account.QuotaPolicy
	LimitsOff                    bool
	WriteTimeout                 time.Duration
	MailboxMax, PendingWritesMax int
	AnonymousClientsMax, Shards  int

	Available   func() error // nil if the node is ready, else the reason (replay or stop)
	BeginChange func() error // called before each change; after nil, call EndChange when the change ends
	EndChange   func()
	AskLeader   func(records [][]byte) []error // sends asks for leases to the leader; returns a result for each, as Accounts.Grant
}

// AskTimeout is the maximum time for a reply to a request. A reply usually takes microseconds. The timeout is much
// longer, so that a short pause of the machine does not cause errors.
const AskTimeout = 5 * time.Second

// leaseWaitMax is the maximum time that an API request waits for a quota lease in a cluster. It is enough for the
// election of a new leader after a crash, also on a busy machine.
const leaseWaitMax = time.Second

// Limits of a quota. QuotaMinuteMax bounds memory: an account stores the time of each request of the last minute.
const (
	QuotaDayMax    = 1_000_000_000
	QuotaMinuteMax = 100_000
)

// CheckQuota returns an error for a quota outside the limits. A zero field is valid and means the node's default.
func CheckQuota(q account.Quota) error {
	if q.Day < 0 || q.Day > QuotaDayMax {
		return fmt.Errorf("%d requests a day, want 0 to %d", q.Day, QuotaDayMax)
	}
	if q.Minute < 0 || q.Minute > QuotaMinuteMax {
		return fmt.Errorf("%d requests a minute, want 0 to %d", q.Minute, QuotaMinuteMax)
	}
	return nil
}
