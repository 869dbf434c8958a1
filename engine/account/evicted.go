package account

import (
	"time"

	"github.com/tasard/tasard/engine"
)

// EvictedState is the part of an account's state that State (the part in the log) lacks. It is kept when the rest of
// the account is evicted from memory. A restart loses it, and then Resume counts all quota leases (requests taken from
// the daily quota in advance) as spent.
type EvictedState struct {
	Days         []EvictedDay
	LeaseAskedAt time.Duration // monotonic time (ClockReading.Monotonic) at which NextLease last returned a lease
	Uses         []KeyUse      // newest uses of keys since the last lease
}

// EvictedDay has the number of spent requests of one day.
type EvictedDay struct {
	Day      engine.Date
	Spent    int
	Refunded int // part of Spent that Refund took back
}

// SaveEvicted sets e to the EvictedState of the account, for which Idle must be true. It reuses the slices of e.
func (a *Account) SaveEvicted(e *EvictedState) {
	*e = EvictedState{LeaseAskedAt: a.leaseAskedAt, Days: e.Days[:0], Uses: a.appendKeyUses(e.Uses[:0])}
	for _, count := range a.days.counts {
		e.Days = append(e.Days, EvictedDay{count.day, count.spent, count.refunded})
	}
}

// Reload adds the data of e to an account that was evicted, and then restored from its State.
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

// appendKeyUses appends the key uses that are not in the log yet.
func (a *Account) appendKeyUses(uses []KeyUse) []KeyUse {
	for i := range a.keys {
		if key := &a.keys[i]; key.used.After(key.record.LastUsed) {
			uses = append(uses, KeyUse{key.record.ID, key.used})
		}
	}
	return uses
}
