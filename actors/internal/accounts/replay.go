package accounts

import (
	"fmt"
	"time"

	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// Replay rebuilds the accounts, the registry of logins and the key policy from a snapshot and the newer events. If
// there is a snapshot, read it with AddAccount, then call Restore. After that call Apply for each event.
type Replay struct {
	Accounts  map[uint64]*account.Account
	Registry  *account.Registry
	KeyPolicy account.KeyPolicy
	grants    *account.DayGrants
	monotonic time.Duration // newest monotonic time (account.ClockReading) in the log
	parent    *Accounts
}

// NewReplay returns a replay with empty state. Call it after ShareCodes.
func (t *Accounts) NewReplay() *Replay {
	r := &Replay{parent: t, Accounts: map[uint64]*account.Account{}}
	r.Restore(&record.Snapshot{})
	return r
}

// AddAccount adds an account of a snapshot.
func (r *Replay) AddAccount(state account.State) error {
	if r.Accounts[state.Record.ID] != nil {
		return fmt.Errorf("the snapshot has account %d twice", state.Record.ID)
	}
	r.Accounts[state.Record.ID] = account.Restore(state)
	return nil
}

// Restore sets the rest of a snapshot's state. Call it after AddAccount.
func (r *Replay) Restore(s *record.Snapshot) {
	r.Registry = account.RestoreRegistry(s.Registry, r.parent.LoginCodeKey)
	if r.parent.SharedCodes {
		r.Registry.ShareCodes()
	}
	r.KeyPolicy, r.monotonic = s.KeyPolicy, s.Monotonic
	r.grants = &account.DayGrants{Grants: s.Grants, ClosedUntil: s.GrantsClosedUntil}
}

// Apply applies an event, in the order of the log.
func (r *Replay) Apply(event any) error {
	r.monotonic = max(r.monotonic, account.MonotonicOf(event))
	switch e := event.(type) {
	case account.Event:
		a, err := r.account(e)
		if err != nil {
			return err
		}
		a.Apply(e, account.ClockReading{Monotonic: r.monotonic})
	case account.RegistryEvent:
		r.Registry.Apply(e)
	case *account.DayGranted:
		r.grants = r.grants.Apply(*e, false)
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

// account returns the account of an event. The account's first event creates it.
func (r *Replay) account(event account.Event) (*account.Account, error) {
	id := account.IDOf(event)
	a := r.Accounts[id]
	if _, created := event.(*account.Created); a == nil && created {
		a = account.New(id)
		r.Accounts[id] = a
	}
	if a == nil {
		return nil, fmt.Errorf("an event of account %d, which was never created", id)
	}
	return a, nil
}

// finish completes the replay. now is the time of the start; node is 0 without a cluster.
func (r *Replay) finish(node engine.NodeID, now account.ClockReading) {
	if r.parent.SharedCodes {
		r.Registry.Resume(account.ClockReading{Monotonic: r.monotonic})
	}
	for _, a := range r.Accounts {
		a.SetNode(node)
		a.Resume(now)
		a.ResumeGrants(now, r.grants)
	}
	r.grants = r.grants.Earlier(now.Monotonic)
}
