package account

import "time"

// Parameters of leases (reserved parts of a daily quota) in a cluster.
const (
	// leaseTargetSpan is the intended duration of a lease at the account's request rate.
	leaseTargetSpan = 20 * time.Second
	// From earlyRenewalMin requests in the last minute on, a lease is renewed before it is used up. Without early
	// renewal a request has to wait for the log, and is rejected while the log has no leader. With fewer requests,
	// idleReturnAfter would pass before the next request, and the new lease would be returned unused.
	earlyRenewalMin = int(MinuteSpan / idleReturnAfter)
	// idleReturnAfter is the time without requests after which the node returns the unspent part of an account's lease.
	idleReturnAfter = 15 * time.Second
	// A used-up lease of at least spentReturnMin requests is returned too, so that other nodes stop counting it.
	spentReturnMin = 8
)

// tokenLease is the part of an account's leases that this node of a cluster may spend. A token is one request.
type tokenLease struct {
	tokens        int
	until         time.Duration // monotonic time (ClockReading.Monotonic) after which the tokens are void
	untilWall     time.Time     // the same in wall clock time, because monotonic time stops while the machine is suspended
	renewing      int           // unspent tokens included in the lease being written to the log
	returnPending bool          // a return is being written to the log
	rate          spendRate
	previousRate  spendRate // the rate to restore if the lease being written to the log is aborted
}

// tokens returns the account's tokenLease, and creates it if necessary. Call it only in a cluster.
func (a *Account) tokens() *tokenLease {
	if a.ownTokens == nil {
		a.ownTokens = new(tokenLease)
	}
	return a.ownTokens
}

// spendRate counts the requests spent since the last NextLease.
type spendRate struct {
	since time.Duration // monotonic time of the last lease from NextLease
	size  int           // size of the lease
	spent int           // requests spent since the newest NextLease
}

// nextSize returns the size of the next lease: the requests expected in leaseTargetSpan, but at most twice the last
// lease, and at most maximum.
func (r spendRate) nextSize(now time.Duration, maximum int) int {
	span := max(time.Second, now-r.since)
	expected := (r.spent*int(leaseTargetSpan/time.Millisecond) + int(span/time.Millisecond) - 1) / int(span/time.Millisecond)
	return max(1, min(expected, 2*r.size, maximum))
}

// spendable returns the number of a day's requests that may be admitted without another lease.
func (a *Account) spendable(count dayCount, now ClockReading) int {
	switch {
	case a.node == 0:
		return count.unspent()
	case now.Monotonic >= a.tokens().until || !now.Wall.Before(a.tokens().untilWall):
		return 0
	}
	return min(a.tokens().tokens, count.unspent())
}

// nextClusterLease is NextLease in a cluster. The size of the lease follows from the account's request rate
// (leaseSize). Other nodes' leases limit it (fairLease). Void tokens are leased again first, without another charge to
// the day.
func (a *Account) nextClusterLease(digest Digest, now ClockReading, policy QuotaPolicy, waiting int) *Leased {
	day := a.today(now)
	if a.leasePending || a.closedDay(day, policy) {
		return nil
	}
	a.minute.expire(now)
	limits, count := a.quota(policy), a.days.get(day)
	spendable := a.spendable(count, now)
	size := a.leaseSize(limits.Minute, now, policy, waiting)
	if waiting == 0 && (policy.LeaseSize <= 1 || a.minute.count() < earlyRenewalMin || spendable > size/2) {
		return nil
	}
	total := min(size-spendable, a.fairLease(limits.Minute, spendable, now))
	void := max(0, min(total, count.unspent()-spendable))
	refunded := max(0, min(total-void, count.refunded))
	added := max(0, min(total-void-refunded, limits.Day-count.leased))
	if void+added == 0 && (refunded == 0 || waiting == 0) {
		return nil
	}
	t := a.tokens()
	t.renewing = a.spendable(a.days.get(a.days.newest()), now)
	t.tokens = t.renewing
	t.previousRate, t.rate = t.rate, spendRate{since: now.Monotonic, size: size}
	return a.newLease(Leased{
		Day: day, Count: added + int(count.granted), Refunded: refunded, Unspent: t.renewing + void, RecentAdmitted: a.minute.count(),
	}, digest, now)
}

// leaseSize returns the intended number of spendable requests after the next lease. limit is the minute's limit. With a
// LeaseSize of 1 each request is written to the log.
func (a *Account) leaseSize(limit int, now ClockReading, policy QuotaPolicy, waiting int) int {
	free := limit - a.minute.count() - a.nodeLeases.othersAdmittedMax(a.node, now.Monotonic)
	maximum := max(1, policy.LeaseSize)
	if maximum > 1 {
		maximum = max(maximum, limit) // so that a fast account too has a lease when the log has no leader for a few seconds
	}
	return max(a.tokens().rate.nextSize(now.Monotonic, maximum), min(waiting, free))
}

// fairLease returns how many more requests this node may lease: half of those that the minute window has left, so that
// other nodes can lease too. Without leases of other nodes it returns the limit, because Usage enforces the limit.
func (a *Account) fairLease(limit, spendable int, now ClockReading) int {
	others := a.nodeLeases.othersAdmittedMax(a.node, now.Monotonic)
	if others == 0 {
		return limit
	}
	return fairShare(limit - a.minute.count() - others - spendable)
}

// applyNodeLease adds the requests of a lease to the tokens of this node, when the lease is in the log. granted is the
// part of Leased.Count that counts as spent already (chargeEarlierGrant).
func (a *Account) applyNodeLease(e *Leased, granted int) {
	t := a.tokens()
	t.tokens += e.Unspent - t.renewing + e.Count - granted + e.Refunded
	t.renewing, t.returnPending, t.until, t.untilWall = 0, false, e.Monotonic+LeaseSpan, e.At.Add(LeaseSpan)
	a.setNodeLease(LeaseState{Node: e.Node, Monotonic: e.Monotonic, RecentAdmitted: e.RecentAdmitted, Count: e.Unspent + e.Count + e.Refunded, asked: e.Monotonic})
}

// NextReturn returns the event that gives back the lease of an idle account, so that other nodes can lease the
// requests. It returns nil if there is no need. Call it every few seconds in a cluster, and then call Apply or
// AbortReturn.
func (a *Account) NextReturn(now ClockReading) *Returned {
	if a.node == 0 || a.leasePending || a.tokens().returnPending || now.Monotonic-a.leaseAskedAt < idleReturnAfter {
		return nil
	}
	a.minute.expire(now)
	if n := a.minute.count(); n > 0 && now.Monotonic-a.minute.at(n-1) < idleReturnAfter {
		return nil
	}
	if count := a.days.get(a.today(now)); count.leased == count.charged() && a.nodeLeases.of(a.node).Count < spentReturnMin {
		return nil
	}
	return a.Return(now)
}

// AbortReturn must be called if a return will not become durable. The requests can then be leased again.
func (a *Account) AbortReturn(e *Returned) {
	a.tokens().returnPending = false
	if count := a.days.find(e.Day); count != nil {
		count.spent = max(0, count.spent-e.Unspent)
	}
}
