package actors

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/actors/internal/keyindex"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// tenants are all who may ask, and who may let them: accounts, strangers, the registry, the transition.
type tenants struct {
	config     accountsConfig
	host       host
	clock      *steadyClock
	node       engine.NodeID // of a cluster; 0 = it is alone
	quorum     quorum
	random     *lockedReader
	seal       [32]byte // of login codes
	shared     bool     // seal is that of all nodes of a cluster
	keys       *keyindex.Index
	transition atomic.Pointer[account.Transition]
	living     atomic.Int64  // accounts with an actor
	population atomic.Int64  // accounts
	leases     atomic.Uint64 // that were made durable
	asks       tenantInquiries
	kinds      struct{ shard, account, registrar, strangers mailbox.Kind }

	// Set by the replay before the phase is serving, never changed afterwards.
	shards    *shards
	registrar *mailbox.Ref
	strangers *strangers // nil with limits off
	sweeper   *sweeper
	postman   *postman
}

// shardReserve is the room of a shard for one-way messages: one for each login that made an account within the hour,
// of which the registry allows 5,000, and the few that are always under way.
const shardReserve = 8192

// tenantInquiries are the questions that are asked often enough to be used again.
type tenantInquiries struct {
	admissions mailbox.Asker[admissionQuery, account.Grant]
	strangers  mailbox.Asker[strangerQuery, account.Grant]
	refunds    mailbox.Asker[account.Grant, struct{}]
	usages     mailbox.Asker[usageQuery, account.Verdict]
	sessions   mailbox.Asker[account.Digest, uint64]
}

func newTenants(c accountsConfig, host host) (*tenants, error) {
	t := &tenants{
		config: c, host: host, clock: newSteadyClock(c.Clock, c.Steady), random: &lockedReader{from: c.Random}, keys: keyindex.New(),
	}
	t.clock.logger = c.Logger
	t.kinds.shard.Name, t.kinds.shard.Reserve = "shard", shardReserve
	t.kinds.account.Name, t.kinds.account.Passing = "account", true
	t.kinds.registrar.Name, t.kinds.strangers.Name = "registrar", "strangers"
	t.transition.Store(&account.Transition{})
	if t.shared = c.Seal != nil; t.shared {
		if copy(t.seal[:], c.Seal) != len(t.seal) || len(c.Seal) != len(t.seal) {
			return nil, fmt.Errorf("check configuration: Seal has %d bytes, want %d", len(c.Seal), len(t.seal))
		}
		return t, nil
	}
	var err error
	t.seal, err = newSeal(t.random)
	return t, err
}

// lockedReader lets everybody draw from one source.
type lockedReader struct {
	mu   sync.Mutex
	from io.Reader
}

// Read is io.Reader.
func (l *lockedReader) Read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.from.Read(p)
}

// shards are all shard actors.
type shards struct{ refs []*mailbox.Ref }

// of is the shard of an account.
func (s *shards) of(account uint64) *mailbox.Ref { return s.refs[account%uint64(len(s.refs))] }

// dormantBytes is about what an idle account takes in a snapshot.
const dormantBytes = 150

// populate starts the actors with the replayed state.
func (t *tenants) populate(actors *mailbox.System, r *tenantReplay, clerk *journalActor, clerkRef *mailbox.Ref) error {
	t.clock.resume(r.steady, r.seen)
	t.transition.Store(&r.transition)
	idle, err := r.settle(t.keys)
	if err != nil {
		return err
	}
	t.shards, t.postman = &shards{}, newPostman()
	for i, accounts := range idle {
		clerk.snapshot.ledger += int64(len(accounts)) * dormantBytes
		if err := t.spawnShard(actors, i, accounts, clerkRef); err != nil {
			return err
		}
	}
	registrar := &registrarActor{
		journal: clerkRef, shards: t.shards, clock: t.clock, registry: r.registry, transition: &t.transition, limit: t.config.MailboxMax,
	}
	if t.registrar, err = actors.Spawn("registrar", &t.kinds.registrar, registrar); err != nil {
		return err
	}
	registrar.self = t.registrar
	clerk.shards, clerk.registry = t.shards.refs, t.registrar
	if !t.config.LimitsOff {
		if t.strangers, err = newStrangers(actors, &t.kinds.strangers, t.config.StrangersMax, t.config.Terms.Allowance, t.clock); err != nil {
			return err
		}
	}
	t.postman.start()
	t.sweeper = startSweeper(t.config.Idle/sweepsIdle, t.node != 0, t.shards.refs)
	return nil
}

func (t *tenants) spawnShard(actors *mailbox.System, index int, accounts map[uint64]dormant, clerk *mailbox.Ref) error {
	c := &t.config
	t.population.Add(int64(len(accounts)))
	shard := &shardActor{
		actors: actors, kind: &t.kinds.account, journal: clerk, name: fmt.Sprintf("account-%d", index), node: t.node, quorum: t.quorum, clock: t.clock, terms: c.Terms,
		limits:  accountLimits{parked: c.MailboxMax, changes: c.PendingWritesMax},
		liveMax: c.LiveMax, living: &t.living, population: &t.population, leases: &t.leases,
		idle: accounts, live: map[uint64]*living{}, keys: t.keys, outbox: &outbox{postman: t.postman},
	}
	ref, err := actors.Spawn(fmt.Sprintf("accounts-%d", index), &t.kinds.shard, shard)
	if err != nil {
		return err
	}
	shard.self, shard.outbox.shard = ref, ref
	t.postman.boxes = append(t.postman.boxes, shard.outbox)
	t.shards.refs = append(t.shards.refs, ref)
	return nil
}

// settle makes every account give back what it has leased and not spent. Nothing else is asked any more.
func (t *tenants) settle(patience time.Duration) {
	t.sweeper.end()
	t.postman.end()
	var questions []*settling
	for _, shard := range t.shards.refs {
		m := mailbox.NewQuestion[settleQuery, struct{}](settleQuery{})
		questions = append(questions, m)
		shard.Send(m)
	}
	for _, m := range questions {
		_, _ = m.Wait(patience) // what could not be written is forfeited, as in a crash
	}
}

// stop ends the actors and waits for them: what an account has not answered is settled while there is still somebody to hear it.
func (t *tenants) stop() {
	for _, shard := range t.shards.refs {
		m := mailbox.NewQuestion[dismissQuery, []*mailbox.Ref](dismissQuery{})
		shard.Send(m)
		accounts, _ := m.Await()
		shard.Stop()
		for _, account := range accounts {
			account.Wait()
		}
	}
	t.registrar.Stop()
	if t.strangers != nil {
		t.strangers.stop()
	}
}
