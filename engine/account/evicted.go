package account

import (
	"time"

	"github.com/tasard/tasard/engine"
)

// EvictedState is what must be kept of an evicted account in this process, beside its State. After a restart it is
// lost: then Resume counts all leases as spent.
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
	var e EvictedState
	a.SaveEvicted(&e)
	return e
}

// SaveEvicted is Evict into memory that is used again.
func (a *Account) SaveEvicted(e *EvictedState) {
	*e = EvictedState{LeaseAskedAt: a.leaseAskedAt, Days: e.Days[:0], Uses: a.appendKeyUses(e.Uses[:0])}
	for _, count := range a.days.counts {
		e.Days = append(e.Days, EvictedDay{count.day, count.spent, count.refunded})
	}
}

// Reload completes an account that was made from its State.
func (a *Account) Reload(e EvictedState) {
	a.leaseAskedAt = e.LeaseAskedAt
	for _, day := range e.Days {
		if count := a.days.find(day.Day); count != nil {
			count.spent, count.refunded = day.Spent, day.Refunded
		}
	}
	for _, use := range e.Uses {
		if key := a.key(use.KeyID); key != nil {
			key.used = use.At
		}
	}
}

// newKeyUses returns the uses that the log does not have yet.
func (a *Account) newKeyUses() []KeyUse { return a.appendKeyUses(nil) }

func (a *Account) appendKeyUses(uses []KeyUse) []KeyUse {
	for i := range a.keys {
		if key := &a.keys[i]; key.used.After(key.record.LastUsed) {
			uses = append(uses, KeyUse{key.record.ID, key.used})
		}
	}
	return uses
}
