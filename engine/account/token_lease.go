package account

import "time"

// How a node of a cluster leases.
const (
	// leaseTargetSpan is for how long a lease should last, as fast as the account asks.
	leaseTargetSpan = 20 * time.Second
	// earlyRenewalMin is the least lease that is renewed before it is used up. What is asked for less often waits for the log, and leaves
	// nothing behind that would have to be returned.
	earlyRenewalMin = 4
	// idleReturnAfter is how long a node rests from an account before it returns what it has not spent.
	idleReturnAfter = 15 * time.Second
	// spentReturnMin is how much the others must count of this node's lease to be told that it is spent.
	spentReturnMin = 8
)

// tokenLease is what a node of a cluster may spend, and how fast it did.
type tokenLease struct {
	tokens        int           // of what it leased: the log says that it may spend them
	until         time.Duration // steady; they are void from then on
	untilWall     time.Time     // wall time; the same, for a machine that slept, whose steady time may not have gone on
	renewing      int           // of tokens, those in the lease that is on its way
	returnPending bool          // a return is on its way into the log
	rate          spendRate
	previousRate  spendRate // the lease that is on its way
}

// spendRate is how fast a lease was spent.
type spendRate struct {
	since time.Duration // steady: when it was asked for
	size  int
	spent int // since then
}

// next is how much to lease now, at most so much: as much as the account would spend in leaseTargetSpan, and at most twice the last lease.
func (p spendRate) next(now time.Duration, most int) int {
	span := max(time.Second, now-p.since)
	expected := (p.spent*int(leaseTargetSpan/time.Millisecond) + int(span/time.Millisecond) - 1) / int(span/time.Millisecond)
	return max(1, min(expected, 2*p.size, most))
}

// spendable is what may be spent of a day at once.
func (a *Account) spendable(count dayCount, now ClockReading) int {
	switch {
	case a.node == 0:
		return count.unspent()
	case now.Steady >= a.tokenLease.until || !now.Wall.Before(a.tokenLease.untilWall):
		return 0
	}
	return min(a.tokenLease.tokens, count.unspent())
}

// nextClusterLease is NextLease in a cluster. A node leases by the account's pace; when others have a share of the minute at most half of what is
// free, and at least one. What it has leased before and may spend no more it takes up first: that costs the day nothing.
func (a *Account) nextClusterLease(digest Digest, now ClockReading, terms QuotaPolicy, waiting int) *Leased {
	day := a.today(now)
	if a.leasePending || a.days.closed(day) {
		return nil
	}
	a.minute.expire(now)
	limits, count := a.quota(terms), a.days.get(day)
	live := a.spendable(count, now)
	size := a.wantedLease(limits.Minute, now, terms, waiting)
	if waiting == 0 && (size < earlyRenewalMin || live > size/2) {
		return nil
	}
	want := min(size-live, a.fairLease(limits.Minute, live, now))
	taken := max(0, min(want, count.unspent()-live))
	again := max(0, min(want-taken, count.refunded))
	fresh := max(0, min(want-taken-again, limits.Day-count.leased))
	if taken+fresh == 0 && (again == 0 || waiting == 0) {
		return nil
	}
	stated := a.days.get(a.days.newest())
	a.tokenLease.renewing = a.spendable(stated, now)
	a.tokenLease.tokens = a.tokenLease.renewing
	key, _ := a.Key(digest)
	lease := &Leased{
		Account: a.record.ID, Day: day, Count: fresh, Refunded: again, Unspent: a.tokenLease.renewing + taken, Steady: now.Steady, KeyID: key.ID,
		At: plainUTC(now.Wall), Node: a.node, RecentAdmitted: len(a.minute.active()),
	}
	a.tokenLease.previousRate, a.tokenLease.rate = a.tokenLease.rate, spendRate{since: now.Steady, size: size}
	a.leasePending, a.leaseAskedAt = true, now.Steady
	return lease
}

// wantedLease is how much the account would like to have leased.
func (a *Account) wantedLease(limit int, now ClockReading, terms QuotaPolicy, waiting int) int {
	free := limit - len(a.minute.active()) - a.othersAdmittedMax(now.Steady)
	return max(a.tokenLease.rate.next(now.Steady, max(1, terms.LeaseSize)), min(waiting, free))
}

// fairLease is how much more this node should lease. While nobody else has a share it may lease ahead of the minute, which Usage holds anyway.
func (a *Account) fairLease(limit, live int, now ClockReading) int {
	others := a.othersAdmittedMax(now.Steady)
	if others == 0 {
		return limit
	}
	return (max(0, limit-len(a.minute.active())-others-live) + 1) / 2
}

// applyNodeLease applies a lease of this node.
func (a *Account) applyNodeLease(e *Leased) {
	p := &a.tokenLease
	p.tokens += e.Unspent - p.renewing + e.Count + e.Refunded
	p.renewing, p.until, p.untilWall = 0, e.Steady+LeaseSpan, e.At.Add(LeaseSpan)
	a.setNodeLease(LeaseState{Node: e.Node, Steady: e.Steady, RecentAdmitted: e.RecentAdmitted, Count: e.Unspent + e.Count + e.Refunded})
}

// NextReturn is what to tell the log of an account that this node rests from, nil while there is no need: then the others get what it has
// not spent. In a cluster ask for it every few seconds. Its outcome is Apply or AbortReturn; what is admitted meanwhile needs another lease.
func (a *Account) NextReturn(now ClockReading) *Returned {
	if a.node == 0 || a.leasePending || a.tokenLease.returnPending || now.Steady-a.leaseAskedAt < idleReturnAfter {
		return nil
	}
	a.minute.expire(now)
	if inside := a.minute.active(); len(inside) > 0 && now.Steady-inside[len(inside)-1] < idleReturnAfter {
		return nil
	}
	if count := a.days.get(a.today(now)); count.leased == count.charged() && a.ownNodeLease().Count < spentReturnMin {
		return nil
	}
	return a.Return(now)
}

// AbortReturn says that a return did not become durable and never will. What it would have given back is void until it is leased again.
func (a *Account) AbortReturn(e *Returned) {
	a.tokenLease.returnPending = false
	if count := a.days.find(e.Day); count != nil {
		count.spent = max(0, count.spent-e.Unspent)
	}
}
