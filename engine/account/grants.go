package account

import (
	"slices"
	"time"

	"github.com/tasard/tasard/engine"
)

// DayGranted is the event of a grant: it gives each account of a shard its first lease of a day. (A lease is a reserved
// part of the daily quota.) An account spends this lease without an event of its own. The account's next event of the
// day includes the grant, in Leased.Count or Returned.Granted. After a crash the grant counts as spent for each account
// without such an event, even if the account is created later that day: the log does not tell which accounts had the
// grant.
type DayGranted struct {
	Shard, Shards uint64 // the accounts whose number modulo Shards is Shard
	Day           engine.Date
	Size          int           // number of requests for each account
	Monotonic     time.Duration // monotonic time of the decision (ClockReading.Monotonic)
	// TakenBack ends the grant at a clean stop, after each account that used the grant has an event that includes it.
	TakenBack bool
}

// DayGrant is a DayGranted that was not taken back.
type DayGrant struct {
	Shard, Shards uint64
	Day           engine.Date
	Size          int
	Until         time.Duration // monotonic time of the next grant for the same accounts; 0 = none yet
	own           bool          // this process decided it; these are the newest
}

// DayGrants are the grants of a log. The value is immutable. Only grants of this process can be used, because grants of
// earlier processes may have been spent.
type DayGrants struct {
	Grants      []DayGrant  // in the order of the log
	ClosedUntil engine.Date // grants of this day and earlier days may have been dropped
	ended       bool        // accounts may no longer begin to use a grant
}

// dayGrantsMax is the maximum number of grants that are kept for one shard.
const dayGrantsMax = 8

// Apply returns the grants after an event. own tells whether this process decided the event.
func (d *DayGrants) Apply(e DayGranted, own bool) *DayGrants {
	after, days, oldest := d.clone(), 0, engine.Date(0)
	for i := range after.Grants {
		if g := &after.Grants[i]; g.Shard == e.Shard && g.Shards == e.Shards {
			if days++; days == 1 || g.Day < oldest {
				oldest = g.Day
			}
			if g.Until == 0 {
				g.Until = e.Monotonic
			}
		}
	}
	obsolete := engine.Date(0)
	if e.TakenBack {
		obsolete = e.Day
	} else if days >= dayGrantsMax { // the day is then closed for accounts without an event of it
		obsolete, after.ClosedUntil = oldest, max(after.ClosedUntil, oldest)
	}
	after.Grants = slices.DeleteFunc(after.Grants, func(g DayGrant) bool {
		return g.Shard == e.Shard && g.Shards == e.Shards && g.Day == obsolete
	})
	if !e.TakenBack {
		after.Grants = append(after.Grants, DayGrant{Shard: e.Shard, Shards: e.Shards, Day: e.Day, Size: e.Size, own: own})
	}
	return after
}

func (d *DayGrants) clone() *DayGrants {
	return &DayGrants{Grants: slices.Clone(d.Grants), ClosedUntil: d.ClosedUntil, ended: d.ended}
}

// Covers reports whether an account may have had a grant of a day, from any process. The grant may have been dropped.
func (d *DayGrants) Covers(account uint64, day engine.Date) bool {
	size, _ := d.find(account, day)
	return size > 0 || day <= d.ClosedUntil
}

// find returns the size of the grant of a day for an account, and whether only this process made grants of that day for
// it. If processes with different numbers of shards made grants of the day, the size is that of the largest.
func (d *DayGrants) find(account uint64, day engine.Date) (size int, own bool) {
	own = true
	for i := range d.Grants {
		if g := &d.Grants[i]; g.Day == day && account%g.Shards == g.Shard {
			size, own = max(size, g.Size), own && g.own
		}
	}
	return size, own
}

// usable reports whether an account may begin to use the grant of a day.
func (d *DayGrants) usable(account uint64, day engine.Date) bool {
	_, own := d.find(account, day)
	return own && !d.ended && d.isNewest(account, day)
}

// isNewest reports whether the newest grant for an account is of this day. An older grant is still in use if the clock
// was set back across midnight. To spend from an older grant the account needs an event, because after a crash spentMax
// counts only grants that were the newest in the last minute.
func (d *DayGrants) isNewest(account uint64, day engine.Date) bool {
	for i := len(d.Grants) - 1; i >= 0; i-- {
		if g := &d.Grants[i]; account%g.Shards == g.Shard {
			return g.Day == day
		}
	}
	return false
}

// Earlier returns the grants as those of an earlier process, which ended at a monotonic time.
func (d *DayGrants) Earlier(ended time.Duration) *DayGrants {
	earlier := d.clone()
	for i := range earlier.Grants {
		g := &earlier.Grants[i]
		if g.own = false; g.Until == 0 {
			g.Until = ended
		}
	}
	return earlier
}

// End returns the grants for a stop: accounts can no longer begin to use them.
func (d *DayGrants) End() *DayGrants {
	after := d.clone()
	after.ended = true
	return after
}

// Newest returns the day of this process's newest grant, or 0. The grant can be taken back after End, when all accounts
// have returned their leases (Account.Return).
func (d *DayGrants) Newest() engine.Date {
	if n := len(d.Grants); n > 0 && d.Grants[n-1].own {
		return d.Grants[n-1].Day
	}
	return 0
}

// OfShard returns the part of the grants that a shard stores in a snapshot: its own grants. The first shard also stores
// the grants of earlier processes with another number of shards.
func (d *DayGrants) OfShard(shard, shards uint64) DayGrants {
	return DayGrants{ClosedUntil: d.ClosedUntil, Grants: slices.DeleteFunc(slices.Clone(d.Grants), func(g DayGrant) bool {
		return g.Shards == shards && g.Shard != shard || g.Shards != shards && shard != 0
	})}
}

// spentMax returns an upper bound of the requests that an account has spent from grants in the last minute. The
// newest day with an event of the account does not count, because that event includes the grant.
func (d *DayGrants) spentMax(account uint64, days *dayCounts, now time.Duration) (sum int) {
	for _, g := range d.Grants {
		if account%g.Shards == g.Shard && days.find(g.Day) == nil && (g.Until == 0 || now-g.Until < MinuteSpan) {
			sum += g.Size
		}
	}
	return sum
}

// chargeEarlierGrant counts an earlier process's grant of a day as spent, unless the account has an event of that day
// or a later day. It counts the whole grant, because the quota may have been larger when the account spent the grant.
func (a *Account) chargeEarlierGrant(day engine.Date, policy QuotaPolicy) {
	grants := policy.Grants
	if grants == nil || a.days.day >= day {
		return
	}
	if size, own := grants.find(a.id, day); !own {
		a.days.dayCount = dayCount{day: day, leased: size, granted: size, spent: size}
	}
}

// takeGrant lets the account use the grant of a day, if there is one and the account may begin to use it.
func (a *Account) takeGrant(day engine.Date, policy QuotaPolicy) {
	grants := policy.Grants
	if grants == nil || a.node != 0 || a.days.day >= day || a.asking {
		return
	}
	if grants.usable(a.id, day) && day > grants.ClosedUntil {
		size, _ := grants.find(a.id, day)
		size = min(size, a.quota(policy).Day)
		a.days.dayCount = dayCount{day: day, leased: size, granted: size}
	}
}

// closedDay reports whether a day does not accept charges: it is outside the calendar, or its grants were dropped.
func (a *Account) closedDay(day engine.Date, policy QuotaPolicy) bool {
	return day == 0 || policy.Grants != nil && day <= policy.Grants.ClosedUntil && a.days.day < day
}

// ResumeGrants completes Resume: the minute window then includes the requests that the account may have spent from
// grants.
func (a *Account) ResumeGrants(now ClockReading, grants *DayGrants) {
	a.minute.restored += grants.spentMax(a.id, &a.days, now.Monotonic)
}
