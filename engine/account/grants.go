package account

import (
	"slices"
	"time"

	"github.com/tasard/tasard/engine"
)

// DayGranted is the grant of a day: the first lease of that day for each account of a shard, in one event. An account
// spends it without an event of its own. The account's next event of the day includes the grant (Leased.Count,
// Returned.Granted). After a crash, an account without such an event counts the grant as spent. This holds even for
// accounts created later that day, because the log does not tell which accounts the crashed process had.
type DayGranted struct {
	Shard, Shards uint64 // for accounts with account number modulo Shards == Shard
	Day           engine.Date
	Size          int
	Monotonic     time.Duration // of the decision
	// TakenBack ends the grant at a clean stop. Then each account that has used the grant has an event that includes
	// it.
	TakenBack bool
}

// DayGrant is a DayGranted that was not taken back.
type DayGrant struct {
	Shard, Shards uint64
	Day           engine.Date
	Size          int
	Until         time.Duration // monotonic time of the next grant for the same accounts; 0 = none yet
}

// DayGrants are the grants of a log. The value is immutable. Only grants of this process can be used, because grants of
// earlier processes may have been spent.
type DayGrants struct {
	Grants      []DayGrant  // in the order of the log
	ClosedUntil engine.Date // grants of this day and earlier days may be missing
	own         int         // number of grants of this process, at the end of Grants
	ended       bool        // accounts may no longer begin to use a grant
}

// dayGrantsMax is the number of days with kept grants in a shard.
const dayGrantsMax = daysKept

// Apply returns the grants after an event. own says that this process decided the event.
func (d *DayGrants) Apply(e DayGranted, own bool) *DayGrants {
	after := &DayGrants{Grants: slices.Clone(d.Grants), ClosedUntil: d.ClosedUntil, own: d.own, ended: d.ended}
	days := 0
	for i := range after.Grants {
		if g := &after.Grants[i]; g.Shard == e.Shard && g.Shards == e.Shards {
			days++
			if g.Until == 0 {
				g.Until = e.Monotonic
			}
		}
	}
	switch {
	case e.TakenBack:
		after.drop(func(g DayGrant) bool { return g.Shard == e.Shard && g.Shards == e.Shards && g.Day == e.Day })
		return after
	case days >= dayGrantsMax:
		after.dropOldest(e.Shard, e.Shards)
	}
	after.Grants = append(after.Grants, DayGrant{Shard: e.Shard, Shards: e.Shards, Day: e.Day, Size: e.Size})
	if own {
		after.own++
	}
	return after
}

func (d *DayGrants) drop(obsolete func(DayGrant) bool) {
	first := len(d.Grants) - d.own
	kept := slices.DeleteFunc(slices.Clone(d.Grants[:first]), obsolete)
	own := slices.DeleteFunc(slices.Clone(d.Grants[first:]), obsolete)
	d.Grants, d.own = append(kept, own...), len(own)
}

// dropOldest drops the grant of the earliest day of a shard. That day is then closed for accounts without an event.
func (d *DayGrants) dropOldest(shard, shards uint64) {
	oldest := engine.Date(0)
	for _, g := range d.Grants {
		if g.Shard == shard && g.Shards == shards && (oldest == 0 || g.Day < oldest) {
			oldest = g.Day
		}
	}
	d.ClosedUntil = max(d.ClosedUntil, oldest)
	d.drop(func(g DayGrant) bool { return g.Shard == shard && g.Shards == shards && g.Day == oldest })
}

// Covers reports whether any process made a grant of a day for an account.
func (d *DayGrants) Covers(account uint64, day engine.Date) bool {
	size, _ := d.find(account, day)
	return size > 0 || day <= d.ClosedUntil
}

// find returns the size of the grant of a day for an account, and whether the account can use it. It can use the newest
// grant for the account if this process made it. With older grants of this process, accounts may only continue. If
// several processes with different numbers of shards made grants, it returns the largest.
func (d *DayGrants) find(account uint64, day engine.Date) (size int, usable bool) {
	newest := true
	for i := len(d.Grants) - 1; i >= 0; i-- {
		g := d.Grants[i]
		if account%g.Shards != g.Shard {
			continue
		}
		if g.Day == day {
			own := i >= len(d.Grants)-d.own
			if size == 0 {
				usable = own && newest
			}
			usable = usable && own
			size = max(size, g.Size)
		}
		newest = false
	}
	return size, usable && !d.ended
}

// isNewest reports whether the newest grant for an account is for this day. Only the newest grant is spent without an
// event. After the clock was set back across midnight, accounts may continue with an older day. Without events for that
// day, a crash would lose their requests of the last minute (spentMax).
func (d *DayGrants) isNewest(account uint64, day engine.Date) bool {
	for i := len(d.Grants) - 1; i >= 0; i-- {
		if g := &d.Grants[i]; account%g.Shards == g.Shard {
			return g.Day == day
		}
	}
	return false
}

// Earlier converts the grants of a process that ended at a monotonic time to grants of an earlier process.
func (d *DayGrants) Earlier(ended time.Duration) *DayGrants {
	earlier := &DayGrants{Grants: slices.Clone(d.Grants), ClosedUntil: d.ClosedUntil}
	for i := range earlier.Grants {
		if earlier.Grants[i].Until == 0 {
			earlier.Grants[i].Until = ended
		}
	}
	return earlier
}

// End returns the grants, closed for accounts that have not begun to use them.
func (d *DayGrants) End() *DayGrants {
	ended := *d
	ended.ended = true
	return &ended
}

// Newest returns the day of this process's newest grant, or 0. The grant can be taken back after End, when all accounts
// have returned their leases (Account.Return).
func (d *DayGrants) Newest() engine.Date {
	if d.own == 0 {
		return 0
	}
	return d.Grants[len(d.Grants)-1].Day
}

// OfShard returns the grants to be stored by one of several shards: its own. The first shard also stores grants of
// earlier processes with another number of shards.
func (d *DayGrants) OfShard(shard, shards uint64) DayGrants {
	return DayGrants{ClosedUntil: d.ClosedUntil, Grants: slices.DeleteFunc(slices.Clone(d.Grants), func(g DayGrant) bool {
		return g.Shards == shards && g.Shard != shard || g.Shards != shards && shard != 0
	})}
}

// ofThisProcess reports whether only this process made grants of a day for an account.
func (d *DayGrants) ofThisProcess(account uint64, day engine.Date) bool {
	return !slices.ContainsFunc(d.Grants[:len(d.Grants)-d.own], func(g DayGrant) bool {
		return g.Day == day && account%g.Shards == g.Shard
	})
}

// spentMax returns an upper bound of an account's requests spent from grants in the minute before now. It considers
// only days without an event, because an event of the day would include the grant.
func (d *DayGrants) spentMax(account uint64, days *dayCounts, now time.Duration) (sum int) {
	for _, g := range d.Grants {
		if account%g.Shards == g.Shard && days.find(g.Day) == nil && (g.Until == 0 || now-g.Until < MinuteSpan) {
			sum += g.Size
		}
	}
	return sum
}

// chargeEarlierGrant counts an earlier process's grant of a day as spent if the log has no later event of the account.
// It counts the whole grant, because the quota may have been larger when the account spent it.
func (a *Account) chargeEarlierGrant(day engine.Date, policy QuotaPolicy) {
	grants := policy.Grants
	if grants == nil || a.days.newest() >= day || len(a.days.counts) >= daysKept || grants.ofThisProcess(a.id, day) {
		return
	}
	if size, _ := grants.find(a.id, day); size > 0 {
		a.days.addGrant(day, size).spendAll()
	}
}

// takeGrant gives the account the grant of a day, if it can use one and has not done so.
func (a *Account) takeGrant(day engine.Date, policy QuotaPolicy) {
	grants := policy.Grants
	if grants == nil || a.node != 0 || a.days.newest() >= day || len(a.days.counts) >= daysKept || a.leasePending {
		return
	}
	if size, usable := grants.find(a.id, day); usable && day > grants.ClosedUntil {
		a.days.addGrant(day, min(size, a.quota(policy).Day))
	}
}

// closedDay reports whether a day no longer accepts charges, because its counts were dropped.
func (a *Account) closedDay(day engine.Date, policy QuotaPolicy) bool {
	return a.days.closed(day) || policy.Grants != nil && day <= policy.Grants.ClosedUntil && a.days.newest() < day
}

// ResumeGrants completes Resume with the grants of the log, which the account may have spent in the last minute.
func (a *Account) ResumeGrants(now ClockReading, grants *DayGrants) {
	a.minute.restored += grants.spentMax(a.id, &a.days, now.Monotonic)
}
