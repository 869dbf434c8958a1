package account

import "time"

// How a node of a cluster leases.
const (
	// leaseTargetSpan is how long a lease should last at the account's rate.
	leaseTargetSpan = 20 * time.Second
	// earlyRenewalMin is the smallest lease that is renewed before it is used up. An account with fewer requests waits
	// for the log, and has nothing to return.
	earlyRenewalMin = 4
	// idleReturnAfter is how long an account has no requests before the node returns what is left of its lease.
	idleReturnAfter = 15 * time.Second
	// spentReturnMin is the smallest spent lease that is returned, so that other nodes stop counting it.
	spentReturnMin = 8
)

// tokenLease is what a node of a cluster may spend, and how fast it is spent.
type tokenLease struct {
	tokens        int
	until         time.Duration // steady; after it the tokens are void
	untilWall     time.Time     // the same, for machines whose steady time stops while they are suspended
	renewing      int           // of tokens, those that the pending lease includes
	returnPending bool          // a return is being written
	rate          spendRate
	previousRate  spendRate // before the pending lease
}

// spendRate is how fast a lease is spent.
type spendRate struct {
	since time.Duration // steady time of NextLease
	size  int
	spent int // since then
}

// nextSize returns the size of the next lease: what is spent in leaseTargetSpan, at most twice the last lease and
// maximum.
func (r spendRate) nextSize(now time.Duration, maximum int) int {
	span := max(time.Second, now-r.since)
	expected := (r.spent*int(leaseTargetSpan/time.Millisecond) + int(span/time.Millisecond) - 1) / int(span/time.Millisecond)
	return max(1, min(expected, 2*r.size, maximum))
}

// spendable returns how many requests of a day may be admitted without another lease.
func (a *Account) spendable(count dayCount, now ClockReading) int {
	switch {
	case a.node == 0:
		return count.unspent()
	case now.Steady >= a.tokenLease.until || !now.Wall.Before(a.tokenLease.untilWall):
		return 0
	}
	return min(a.tokenLease.tokens, count.unspent())
}

// nextClusterLease is NextLease in a cluster. The size follows the rate at which the account spends; when other nodes
// have leases too, it takes at most half of what is free in the minute, and at least one. Tokens that have become void
// are leased again first, which is not charged to the day.
func (a *Account) nextClusterLease(digest Digest, now ClockReading, policy QuotaPolicy, waiting int) *Leased {
	day := a.today(now)
	if a.leasePending || a.days.closed(day) {
		return nil
	}
	a.minute.expire(now)
	limits, count := a.quota(policy), a.days.get(day)
	live := a.spendable(count, now)
	size := a.wantedLease(limits.Minute, now, policy, waiting)
	if waiting == 0 && (size < earlyRenewalMin || live > size/2) {
		return nil
	}
	wanted := min(size-live, a.fairLease(limits.Minute, live, now))
	void := max(0, min(wanted, count.unspent()-live))
	refunded := max(0, min(wanted-void, count.refunded))
	fresh := max(0, min(wanted-void-refunded, limits.Day-count.leased))
	if void+fresh == 0 && (refunded == 0 || waiting == 0) {
		return nil
	}
	t := &a.tokenLease
	t.renewing = a.spendable(a.days.get(a.days.newest()), now)
	t.tokens = t.renewing
	t.previousRate, t.rate = t.rate, spendRate{since: now.Steady, size: size}
	return a.newLease(Leased{
		Day: day, Count: fresh, Refunded: refunded, Unspent: t.renewing + void, RecentAdmitted: len(a.minute.active()),
	}, digest, now)
}

func (a *Account) wantedLease(limit int, now ClockReading, policy QuotaPolicy, waiting int) int {
	free := limit - len(a.minute.active()) - a.othersAdmittedMax(now.Steady)
	return max(a.tokenLease.rate.nextSize(now.Steady, max(1, policy.LeaseSize)), min(waiting, free))
}

// fairLease returns how much more this node should lease. Without leases of other nodes it may lease more than the
// minute allows, because Usage limits the minute anyway.
func (a *Account) fairLease(limit, live int, now ClockReading) int {
	others := a.othersAdmittedMax(now.Steady)
	if others == 0 {
		return limit
	}
	return (max(0, limit-len(a.minute.active())-others-live) + 1) / 2
}

// applyNodeLease applies a lease of this node.
func (a *Account) applyNodeLease(e *Leased) {
	t := &a.tokenLease
	t.tokens += e.Unspent - t.renewing + e.Count + e.Refunded
	t.renewing, t.until, t.untilWall = 0, e.Steady+LeaseSpan, e.At.Add(LeaseSpan)
	a.setNodeLease(LeaseState{Node: e.Node, Steady: e.Steady, RecentAdmitted: e.RecentAdmitted, Count: e.Unspent + e.Count + e.Refunded})
}

// NextReturn decides to return the lease of an account that has had no requests for a while, so that other nodes can
// lease it; nil while there is no need. In a cluster it should be called every few seconds. The outcome must be
// reported by Apply or AbortReturn.
func (a *Account) NextReturn(now ClockReading) *Returned {
	if a.node == 0 || a.leasePending || a.tokenLease.returnPending || now.Steady-a.leaseAskedAt < idleReturnAfter {
		return nil
	}
	a.minute.expire(now)
	if active := a.minute.active(); len(active) > 0 && now.Steady-active[len(active)-1] < idleReturnAfter {
		return nil
	}
	if count := a.days.get(a.today(now)); count.leased == count.charged() && a.ownNodeLease().Count < spentReturnMin {
		return nil
	}
	return a.Return(now)
}

// AbortReturn reports that a return will not become durable. Its requests can be leased again.
func (a *Account) AbortReturn(e *Returned) {
	a.tokenLease.returnPending = false
	if count := a.days.find(e.Day); count != nil {
		count.spent = max(0, count.spent-e.Unspent)
	}
}
