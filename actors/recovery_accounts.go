package actors

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tasard/tasard/actors/internal/keyindex"
	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/engine/account"
)

// tenantReplay applies the events of accounts, logins and the transition to what a snapshot held.
type tenantReplay struct {
	idle       []map[uint64]dormant        // accounts as the snapshot holds them, by shard, but for those that are
	awake      map[uint64]*account.Account // which an event was about
	claims     [][]keyindex.Claim          // of the keys of the snapshot
	registry   *account.Registry
	transition account.Transition
	steady     time.Duration // newest
	seen       time.Time     // newest wall time of what tells its own
	seal       [32]byte
	shared     bool // seal is that of all nodes of a cluster
	decoder    *record.Decoder
}

func newTenantReplay(shards int) *tenantReplay {
	return &tenantReplay{idle: make([]map[uint64]dormant, shards), awake: map[uint64]*account.Account{}, decoder: record.NewDecoder()}
}

// begin is with nothing; seal is the key that seals login codes: of the process, or shared by the nodes of a cluster.
func (r *tenantReplay) begin(seal [32]byte) {
	r.seal, r.registry = seal, account.NewRegistry(seal)
	r.share()
	for i := range r.idle {
		r.idle[i] = map[uint64]dormant{}
	}
}

// restore begins with what a snapshot held.
func (r *tenantReplay) restore(l *ledger, s *record.Snapshot) error {
	counts := make([]int, len(r.idle))
	for _, part := range l.accounts {
		for i := range part {
			counts[r.shard(part[i].id)]++
		}
	}
	for i, count := range counts {
		r.idle[i] = make(map[uint64]dormant, count)
	}
	for _, part := range l.accounts {
		for i := range part {
			r.idle[r.shard(part[i].id)][part[i].id] = part[i].state
		}
	}
	for i, count := range counts {
		if len(r.idle[i]) != count {
			return errors.New("an account is there twice")
		}
	}
	r.claims = l.claims
	r.registry = account.RestoreRegistry(s.Registry, r.seal, l.addresses...)
	r.share()
	r.transition, r.steady = s.Transition, s.Steady
	return nil
}

func (r *tenantReplay) share() {
	if r.shared {
		r.registry.Share()
	}
}

func (r *tenantReplay) shard(account uint64) uint64 { return account % uint64(len(r.idle)) }

func (r *tenantReplay) apply(event any) error {
	r.steady = max(r.steady, steadyOf(event))
	if lease, is := event.(*account.Leased); is {
		r.see(lease.At)
	}
	switch e := event.(type) {
	case account.Event:
		account, err := r.account(e)
		if err != nil {
			return err
		}
		account.Apply(e)
	case account.RegistryEvent:
		r.registry.Apply(e)
	case *account.Announced:
		r.transition = e.Transition
	case *account.AnnouncementWithdrawn:
		r.transition = account.Transition{}
	case *record.CodeRefused:
	default:
		return fmt.Errorf("no rule replays a %T", event)
	}
	return nil
}

// see takes a wall time over that was the present once.
func (r *tenantReplay) see(at time.Time) {
	if at.After(r.seen) {
		r.seen = at
	}
}

// account is the account of an event, awake.
func (r *tenantReplay) account(event account.Event) (*account.Account, error) {
	id := event.AccountID()
	if account := r.awake[id]; account != nil {
		return account, nil
	}
	idle := r.idle[r.shard(id)]
	a, err := (*account.Account)(nil), error(nil)
	switch asleep, known := idle[id]; {
	case known:
		a, err = r.wake(asleep)
	default:
		if _, created := event.(*account.Created); !created {
			return nil, fmt.Errorf("an event of account %d, which was never created", id)
		}
		a = account.New(id)
	}
	if err != nil {
		return nil, err
	}
	delete(idle, id)
	r.awake[id] = a
	return a, nil
}

func (r *tenantReplay) wake(asleep dormant) (*account.Account, error) {
	data, _ := record.AccountParts(asleep)
	state, err := r.decoder.Account(data)
	if err != nil {
		return nil, err
	}
	return account.Restore(state), nil
}

// settle makes every account dormant, by shard, and fills the index of keys.
func (r *tenantReplay) settle(keys *keyindex.Index) ([]map[uint64]dormant, error) {
	if r.shared {
		r.registry.Resume(account.Moment{Wall: r.seen, Steady: r.steady})
	}
	var claims []keyindex.Claim
	for id, account := range r.awake {
		state := account.State()
		r.idle[r.shard(id)][id] = frozen(state)
		for i := range state.Record.Keys {
			claims = append(claims, keyindex.ClaimOf(state.Record.Keys[i].Digest, id))
		}
	}
	if id, whole := keys.Fill(append(r.claims, claims)); !whole {
		return nil, fmt.Errorf("two accounts have keys alike, one of them is account %d", id)
	}
	r.awake, r.claims = nil, nil
	return r.idle, nil
}

// steadyOf is the steady time of an event, 0 of one that has none.
func steadyOf(event any) time.Duration {
	switch e := event.(type) {
	case *account.Leased:
		return e.Steady
	case *account.Returned:
		return e.Steady
	case *account.CodeIssued:
		return e.Steady
	case *account.CodeFailed:
		return e.Steady
	case *account.SessionOpened:
		return e.Steady
	}
	return 0
}

// newSeal draws the key that seals login codes; it is of this process alone.
func newSeal(random io.Reader) ([32]byte, error) {
	var seal [32]byte
	if _, err := io.ReadFull(random, seal[:]); err != nil {
		return seal, fmt.Errorf("read random bytes: %w", err)
	}
	return seal, nil
}
