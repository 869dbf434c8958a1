package accounts

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tasard/tasard/actors/internal/keyindex"
	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/engine/account"
)

// Replay rebuilds the accounts, the registry of logins and the key policy (from when on API keys are required) from a
// snapshot and the events after it. Call Begin, then Restore if there is a snapshot, then Apply for each event.
type Replay struct {
	Evicted      []map[uint64]evictedAccount // accounts without an event after the snapshot; one map for each shard
	Loaded       map[uint64]*account.Account // accounts with an event after the snapshot
	keyEntries   [][]keyindex.Entry          // entries for the API keys in the snapshot
	Registry     *account.Registry
	KeyPolicy    account.KeyPolicy
	monotonic    time.Duration // newest monotonic time (account.ClockReading) in the log
	newestWall   time.Time     // newest wall time in the log
	loginCodeKey [32]byte
	SharedCodes  bool // a login code works on every node of the cluster
	decoder      *record.Decoder
}

// NewReplay returns a replay that divides the accounts among a number of shards.
func NewReplay(shards int) *Replay {
	return &Replay{Evicted: make([]map[uint64]evictedAccount, shards), Loaded: map[uint64]*account.Account{}, decoder: record.NewDecoder()}
}

// Begin starts a replay with empty state. loginCodeKey is the secret key for hashes of login codes.
func (r *Replay) Begin(loginCodeKey [32]byte) {
	r.loginCodeKey, r.Registry = loginCodeKey, account.NewRegistry(loginCodeKey)
	r.shareRegistry()
	for i := range r.Evicted {
		r.Evicted[i] = map[uint64]evictedAccount{}
	}
}

// Restore replaces the empty state with the state of a snapshot.
func (r *Replay) Restore(accounts *SnapshotAccounts, s *record.Snapshot) error {
	counts := make([]int, len(r.Evicted))
	for _, part := range accounts.accounts {
		for i := range part {
			counts[r.Shard(part[i].id)]++
		}
	}
	for i, count := range counts {
		r.Evicted[i] = make(map[uint64]evictedAccount, count)
	}
	for _, part := range accounts.accounts {
		for i := range part {
			r.Evicted[r.Shard(part[i].id)][part[i].id] = part[i].state
		}
	}
	for i, count := range counts {
		if len(r.Evicted[i]) != count {
			return errors.New("the snapshot has an account twice")
		}
	}
	r.keyEntries = accounts.keyEntries
	r.Registry = account.RestoreRegistry(s.Registry, r.loginCodeKey, accounts.addresses...)
	r.shareRegistry()
	r.KeyPolicy, r.monotonic = s.KeyPolicy, s.Monotonic
	return nil
}

func (r *Replay) shareRegistry() {
	if r.SharedCodes {
		r.Registry.ShareCodes()
	}
}

// Shard returns the index of the shard that keeps an account.
func (r *Replay) Shard(account uint64) uint64 { return account % uint64(len(r.Evicted)) }

// Apply applies an event, in the order of the log.
func (r *Replay) Apply(event any) error {
	r.monotonic = max(r.monotonic, monotonicOf(event))
	if lease, ok := event.(*account.Leased); ok {
		r.ObserveWall(lease.At)
	}
	switch e := event.(type) {
	case account.Event:
		account, err := r.account(e)
		if err != nil {
			return err
		}
		account.Apply(e)
	case account.RegistryEvent:
		r.Registry.Apply(e)
	case *account.Announced:
		r.KeyPolicy = e.KeyPolicy
	case *account.AnnouncementWithdrawn:
		r.KeyPolicy = account.KeyPolicy{}
	case *record.CodeRefused:
	default:
		return fmt.Errorf("no rule replays a %T", event)
	}
	return nil
}

// ObserveWall notes the wall time of an event. From the newest one, the clock detects at the start that the wall clock
// was set back.
func (r *Replay) ObserveWall(at time.Time) {
	if at.After(r.newestWall) {
		r.newestWall = at
	}
}

// account returns the account of an event. If the account is not in Loaded yet, account decodes or creates it, and adds
// it to Loaded.
func (r *Replay) account(event account.Event) (*account.Account, error) {
	id := event.AccountID()
	if account := r.Loaded[id]; account != nil {
		return account, nil
	}
	evicted := r.Evicted[r.Shard(id)]
	a, err := (*account.Account)(nil), error(nil)
	switch encoded, known := evicted[id]; {
	case known:
		a, err = r.load(encoded)
	default:
		if _, created := event.(*account.Created); !created {
			return nil, fmt.Errorf("an event of account %d, which was never created", id)
		}
		a = account.New(id)
	}
	if err != nil {
		return nil, err
	}
	delete(evicted, id)
	r.Loaded[id] = a
	return a, nil
}

func (r *Replay) load(encoded evictedAccount) (*account.Account, error) {
	data, _ := record.SplitAccount(encoded)
	state, err := r.decoder.Account(data)
	if err != nil {
		return nil, err
	}
	return account.Restore(state), nil
}

// finish returns all accounts encoded, by shard, and fills the index of keys.
func (r *Replay) finish(keys *keyindex.Index) ([]map[uint64]evictedAccount, error) {
	if r.SharedCodes {
		r.Registry.Resume(account.ClockReading{Wall: r.newestWall, Monotonic: r.monotonic})
	}
	var keyEntries []keyindex.Entry
	for id, account := range r.Loaded {
		state := account.State()
		r.Evicted[r.Shard(id)][id] = encodeState(state)
		for i := range state.Record.Keys {
			keyEntries = append(keyEntries, keyindex.NewEntry(state.Record.Keys[i].Digest, id))
		}
	}
	if id, ok := keys.Fill(append(r.keyEntries, keyEntries)); !ok {
		return nil, fmt.Errorf("two accounts have a key with the same fingerprint, one of them is account %d", id)
	}
	r.Loaded, r.keyEntries = nil, nil
	return r.Evicted, nil
}

// monotonicOf returns the monotonic time of an event, or 0 if the event has none.
func monotonicOf(event any) time.Duration {
	switch e := event.(type) {
	case *account.Leased:
		return e.Monotonic
	case *account.Returned:
		return e.Monotonic
	case *account.CodeIssued:
		return e.Monotonic
	case *account.CodeFailed:
		return e.Monotonic
	case *account.SessionOpened:
		return e.Monotonic
	}
	return 0
}

func newLoginCodeKey(random io.Reader) ([32]byte, error) {
	var key [32]byte
	if _, err := io.ReadFull(random, key[:]); err != nil {
		return key, fmt.Errorf("read random bytes: %w", err)
	}
	return key, nil
}
