package account

import (
	"time"

	"github.com/tasard/tasard/engine"
)

// EvictedState is what an idle account knows beyond its State: what this process has spent of the leases, and what it will say of its keys
// with the next lease. Who puts an account aside and takes it up again in the same process keeps both; after a restart the State
// alone counts, and Resume.
type EvictedState struct {
	Days         []EvictedDay  // of days that something was leased for
	LeaseAskedAt time.Duration // steady
	Uses         []KeyUse      // of keys used since the last lease
}

// EvictedDay is what was spent of what is leased for a day.
type EvictedDay struct {
	Day      engine.Date
	Spent    int
	Refunded int // of Spent
}

// Evict is what the process must keep of an account that is Idle, beside its State.
func (a *Account) Evict() EvictedState {
	aside := EvictedState{LeaseAskedAt: a.leaseAskedAt, Uses: a.newKeyUses()}
	for _, count := range a.days.counts {
		aside.Days = append(aside.Days, EvictedDay{count.day, count.spent, count.refunded})
	}
	return aside
}

// Reload makes a restored account the one that was put aside.
func (a *Account) Reload(aside EvictedState) {
	a.leaseAskedAt = aside.LeaseAskedAt
	for _, day := range aside.Days {
		if count := a.days.find(day.Day); count != nil {
			count.spent, count.refunded = day.Spent, day.Refunded
		}
	}
	for _, use := range aside.Uses {
		if key := a.key(use.KeyID); key != nil {
			key.used = use.At
		}
	}
}

// newKeyUses are the keys used since the log last heard of them.
func (a *Account) newKeyUses() []KeyUse {
	var uses []KeyUse
	for i := range a.keys {
		if key := &a.keys[i]; key.used.After(key.record.LastUsed) {
			uses = append(uses, KeyUse{key.record.ID, key.used})
		}
	}
	return uses
}
