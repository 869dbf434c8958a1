package account

import (
	"time"

	"github.com/tasard/tasard/engine"
)

// EvictedState is what must be kept of an evicted account in this process, beside its State. After a restart it is lost:
// then Resume counts all leases as spent.
type EvictedState struct {
	Days         []EvictedDay
	LeaseAskedAt time.Duration // steady
	Uses         []KeyUse      // since the last lease
}

// EvictedDay is what was spent of the leases of one day.
type EvictedDay struct {
	Day      engine.Date
	Spent    int
	Refunded int // of Spent
}

// Evict returns what to keep of an Idle account.
func (a *Account) Evict() EvictedState {
	evicted := EvictedState{LeaseAskedAt: a.leaseAskedAt, Uses: a.newKeyUses()}
	for _, count := range a.days.counts {
		evicted.Days = append(evicted.Days, EvictedDay{count.day, count.spent, count.refunded})
	}
	return evicted
}

// Reload completes an account that was made from its State.
func (a *Account) Reload(evicted EvictedState) {
	a.leaseAskedAt = evicted.LeaseAskedAt
	for _, day := range evicted.Days {
		if count := a.days.find(day.Day); count != nil {
			count.spent, count.refunded = day.Spent, day.Refunded
		}
	}
	for _, use := range evicted.Uses {
		if key := a.key(use.KeyID); key != nil {
			key.used = use.At
		}
	}
}

// newKeyUses returns the uses that the log does not have yet.
func (a *Account) newKeyUses() []KeyUse {
	var uses []KeyUse
	for i := range a.keys {
		if key := &a.keys[i]; key.used.After(key.record.LastUsed) {
			uses = append(uses, KeyUse{key.record.ID, key.used})
		}
	}
	return uses
}
