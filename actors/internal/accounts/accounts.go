package accounts

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/internal/keyindex"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// Accounts runs the actors for accounts, logins and anonymous clients on one node.
type Accounts struct {
	config       Config
	host         host
	Clock        *steadyClock  // wall clock and monotonic time
	Node         engine.NodeID // 0 without a cluster
	Quorum       commitlog.Quorum
	Random       *lockedReader
	Seal         [32]byte // key of login codes: Config.LoginCodeKey, or random
	Shared       bool     // all nodes of a cluster have the same Seal
	keys         *keyindex.Index
	keyPolicy    atomic.Pointer[account.KeyPolicy]
	Loaded       atomic.Int64  // accounts that have an actor
	Count        atomic.Int64  // accounts
	Leases       atomic.Uint64 // leases written
	requestPools requestPools
	Kinds        struct{ Shard, Account, Registrar, Anonymous mailbox.Kind }

	// Set by Start, constant afterwards.
	Shards    *shards
	Registrar *mailbox.Ref
	anonymous *anonymousTables // nil with limits off
	sweeper   *idleSweeper
	flusher   *outboxFlusher
}

// shardReserve is the mailbox space of a shard for one-way messages. At most a shard gets one for each account created
// in the last hour (the registry allows 5,000), and a few others.
const shardReserve = 8192

// requestPools reuse the messages of frequent requests.
type requestPools struct {
	admissions mailbox.RequestPool[admissionQuery, account.Admission]
	anonymous  mailbox.RequestPool[anonymousQuery, account.Admission]
	refunds    mailbox.RequestPool[account.Admission, struct{}]
	usages     mailbox.RequestPool[UsageQuery, account.QuotaResult]
	sessions   mailbox.RequestPool[account.Digest, uint64]
}

// New returns Accounts without actors. Start starts the actors.
func New(c Config, host host) (*Accounts, error) {
	t := &Accounts{
		config: c, host: host, Clock: newSteadyClock(c.Clock, c.Steady), Random: &lockedReader{reader: c.Random}, keys: keyindex.New(),
	}
	t.Clock.logger = c.Logger
	t.Kinds.Shard.Name, t.Kinds.Shard.Reserve = "shard", shardReserve
	t.Kinds.Account.Name, t.Kinds.Account.Transient = "account", true
	t.Kinds.Registrar.Name, t.Kinds.Anonymous.Name = "registrar", "anonymous"
	t.keyPolicy.Store(&account.KeyPolicy{})
	if t.Shared = c.LoginCodeKey != nil; t.Shared {
		if copy(t.Seal[:], c.LoginCodeKey) != len(t.Seal) || len(c.LoginCodeKey) != len(t.Seal) {
			return nil, fmt.Errorf("check configuration: LoginCodeKey has %d bytes, want %d", len(c.LoginCodeKey), len(t.Seal))
		}
		return t, nil
	}
	var err error
	t.Seal, err = newSeal(t.Random)
	return t, err
}

// lockedReader makes a reader safe for concurrent use.
type lockedReader struct {
	mu     sync.Mutex
	reader io.Reader
}

// Read implements io.Reader.
func (l *lockedReader) Read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reader.Read(p)
}

// shards are the shard actors.
type shards struct{ Refs []*mailbox.Ref }

// of returns the shard of an account.
func (s *shards) of(account uint64) *mailbox.Ref { return s.Refs[account%uint64(len(s.Refs))] }

// accountBytesEstimate is the approximate encoded size of an account in a snapshot.
const accountBytesEstimate = 150

// Start starts the actors with the replayed state.
func (t *Accounts) Start(actors *mailbox.System, r *Replay, log *commitlog.Log) error {
	t.Clock.resume(r.steady, r.newestWall)
	t.keyPolicy.Store(&r.KeyPolicy)
	evicted, err := r.finish(t.keys)
	if err != nil {
		return err
	}
	bytes := int64(0)
	t.Shards, t.flusher = &shards{}, newOutboxFlusher()
	for i, accounts := range evicted {
		bytes += int64(len(accounts)) * accountBytesEstimate
		if err := t.spawnShard(actors, i, accounts, log.Ref); err != nil {
			return err
		}
	}
	registrar := &RegistrarActor{
		journal: log.Ref, shards: t.Shards, clock: t.Clock, registry: r.Registry, keyPolicy: &t.keyPolicy, limit: t.config.MailboxMax,
	}
	if t.Registrar, err = actors.Spawn("registrar", &t.Kinds.Registrar, registrar); err != nil {
		return err
	}
	registrar.self = t.Registrar
	log.SetAccounts(t.Shards.Refs, t.Registrar, bytes)
	if !t.config.LimitsOff {
		if t.anonymous, err = newAnonymousTables(actors, &t.Kinds.Anonymous, t.config.AnonymousClientsMax, t.config.QuotaPolicy.DefaultQuota, t.Clock); err != nil {
			return err
		}
	}
	t.flusher.start()
	t.sweeper = startSweeper(t.Node != 0, t.Shards.Refs)
	return nil
}

func (t *Accounts) spawnShard(actors *mailbox.System, index int, accounts map[uint64]evictedAccount, journal *mailbox.Ref) error {
	c := &t.config
	t.Count.Add(int64(len(accounts)))
	shard := &ShardActor{
		actors: actors, kind: &t.Kinds.Account, journal: journal, node: t.Node,
		common: &accountCommon{
			quotaPolicy: c.QuotaPolicy, clock: t.Clock, quorum: t.Quorum, outbox: &outbox{flusher: t.flusher},
			parkedMax: c.MailboxMax, changesMax: c.PendingWritesMax,
		},
		loadedMax: c.LoadedMax, loadedCount: &t.Loaded, count: &t.Count, leases: &t.Leases,
		evicted: accounts, Loaded: map[uint64]*loadedAccount{}, keys: t.keys,
	}
	ref, err := actors.Spawn(fmt.Sprintf("accounts-%d", index), &t.Kinds.Shard, shard)
	if err != nil {
		return err
	}
	shard.self, shard.common.outbox.shard = ref, ref
	t.flusher.outboxes = append(t.flusher.outboxes, shard.common.outbox)
	t.Shards.Refs = append(t.Shards.Refs, ref)
	return nil
}

// ReturnLeases makes every account return the rest of its lease. The caller must have stopped sending requests.
func (t *Accounts) ReturnLeases(timeout time.Duration) {
	t.sweeper.end()
	t.flusher.end()
	var requests []*drainRequest
	for _, shard := range t.Shards.Refs {
		m := mailbox.NewRequest[drainCommand, struct{}](drainCommand{})
		requests = append(requests, m)
		shard.Send(m)
	}
	for _, m := range requests {
		_, _ = m.Wait(timeout) // a lease that could not be written is forfeited, as in a crash
	}
}

// Stop stops the actors and waits for them. They reject unanswered requests.
func (t *Accounts) Stop() {
	for _, shard := range t.Shards.Refs {
		m := mailbox.NewRequest[stopCommand, []*mailbox.Ref](stopCommand{})
		shard.Send(m)
		accounts, _ := m.Await()
		shard.Stop()
		for _, account := range accounts {
			account.Wait()
		}
	}
	t.Registrar.Stop()
	if t.anonymous != nil {
		t.anonymous.stop()
	}
}
