package actors

import (
	"fmt"
	"io"
	"time"

	"github.com/tasard/tasard/engine"
)

// tenantReplay applies the events of accounts, logins and the transition to what a snapshot held.
type tenantReplay struct {
	accounts   map[uint64]*ledgerAccount
	registry   *engine.Registry
	transition engine.Transition
	steady     time.Duration // newest
	seal       [32]byte
	decoder    *decoder
}

func newTenantReplay() *tenantReplay {
	return &tenantReplay{accounts: map[uint64]*ledgerAccount{}, decoder: newDecoder()}
}

// begin is with nothing; seal is the key of the process that seals login codes.
func (r *tenantReplay) begin(seal [32]byte) {
	r.seal, r.registry = seal, engine.NewRegistry(seal)
}

// restore begins with what a snapshot held.
func (r *tenantReplay) restore(l *ledger) {
	if l.accounts != nil {
		r.accounts = l.accounts
	}
	r.registry = engine.RestoreRegistry(l.registry, r.seal)
	r.transition, r.steady = l.transition, l.steady
	*l = ledger{}
}

func (r *tenantReplay) apply(event any) error {
	r.steady = max(r.steady, steadyOf(event))
	switch e := event.(type) {
	case engine.AccountEvent:
		account, err := r.account(e)
		if err != nil {
			return err
		}
		account.Apply(e)
	case engine.RegistryEvent:
		r.registry.Apply(e)
	case *engine.Announced:
		r.transition = e.Transition
	case *engine.AnnouncementWithdrawn:
		r.transition = engine.Transition{}
	case *codeRefused:
	default:
		return fmt.Errorf("no rule replays a %T", event)
	}
	return nil
}

// account is the account of an event, awake.
func (r *tenantReplay) account(event engine.AccountEvent) (*engine.Account, error) {
	id := event.AccountID()
	one := r.accounts[id]
	switch _, created := event.(*engine.AccountCreated); {
	case one == nil && created:
		one = &ledgerAccount{awake: engine.NewAccount(id)}
		r.accounts[id] = one
	case one == nil:
		return nil, fmt.Errorf("an event of account %d, which was never created", id)
	case one.awake == nil:
		data, _ := one.state.parts()
		state, err := r.decoder.accountState(data)
		if err != nil {
			return nil, err
		}
		one.awake = engine.RestoreAccount(state)
	}
	return one.awake, nil
}

// settle makes every account dormant, by shard, and fills the index of keys.
func (r *tenantReplay) settle(keys *keyIndex, shards int) ([]map[uint64]dormant, error) {
	idle := make([]map[uint64]dormant, shards)
	for i := range idle {
		idle[i] = make(map[uint64]dormant, len(r.accounts)/shards)
	}
	for id, one := range r.accounts {
		if one.awake != nil {
			state, err := freeze(one.awake)
			if err != nil {
				return nil, err
			}
			one.state, one.digests = state, nil
			record := one.awake.Record()
			for i := range record.Keys {
				one.digests = append(one.digests, record.Keys[i].Digest)
			}
		}
		for _, digest := range one.digests {
			if !keys.claim(digest, id) {
				return nil, fmt.Errorf("two accounts have keys alike, one of them is account %d", id)
			}
		}
		idle[id%uint64(shards)][id] = one.state
	}
	r.accounts = nil
	return idle, nil
}

// steadyOf is the steady time of an event, 0 of one that has none.
func steadyOf(event any) time.Duration {
	switch e := event.(type) {
	case *engine.Leased:
		return e.Steady
	case *engine.Returned:
		return e.Steady
	case *engine.CodeIssued:
		return e.Steady
	case *engine.CodeFailed:
		return e.Steady
	case *engine.SessionOpened:
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
