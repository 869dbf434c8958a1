package account

import (
	"time"

	"github.com/tasard/tasard/engine"
)

// A node asks for a quota lease (a reserved part of an account's daily quota) with NextLease, and gives the rest of its
// leases back with Return. In a cluster the leader decides on these asks (Grant); without one every ask is granted. The
// node has the lease when Apply applies the event that was written to the log.

// awaits reports whether this process waits for the lease or return that a node asked for at a monotonic time.
func (a *Account) awaits(node engine.NodeID, asked time.Duration) bool {
	return a.asking && node == a.node && asked == a.askedAt
}

// Asking reports whether this process waits for a lease, or for its return, to be in the log.
func (a *Account) Asking() bool { return a.asking }

func (a *Account) applyLease(e *Leased, now ClockReading) {
	own, added := a.awaits(e.Node, e.Monotonic), e.Count
	if count := a.days.getOrCreate(e.Day); count != nil {
		added -= int(count.granted)
		count.leased, count.granted = count.leased+added, 0
		if own {
			refunded := min(e.Refunded, count.refunded)
			count.refunded -= refunded
			count.spent -= refunded
		} else {
			count.spent += added
		}
	}
	if own {
		a.asking = false
		a.addTokens(e, added)
	}
	lease := LeaseState{Node: e.Node, RecentAdmitted: e.RecentAdmitted, Count: e.Unspent + e.Count + e.Refunded, asked: e.Monotonic}
	if e.Node == 0 && e.RecentAdmitted == 0 { // earlier versions did not write it
		lease.RecentAdmitted = a.single.admittedBefore(e.Monotonic, e.Unspent)
	}
	a.setLease(lease, now)
	a.keys.setUses(KeyUse{e.KeyID, e.At})
}

// applyReturn gives unspent requests back to the day. Requests that the node admitted in the last minute still count
// until they are a minute old.
func (a *Account) applyReturn(e *Returned, now ClockReading) {
	if e.Granted > 0 {
		a.days.getOrCreate(e.Day)
	}
	if count := a.days.find(e.Day); count != nil {
		unspent := min(e.Unspent-e.Granted+int(count.granted), count.leased)
		count.leased -= unspent
		count.spent, count.granted = max(0, count.spent-unspent), 0
	}
	if a.awaits(e.Node, e.Monotonic) {
		a.asking = false
	}
	if e.Node == 0 {
		a.nodeLeases = nil
	}
	a.setLease(LeaseState{Node: e.Node, RecentAdmitted: e.RecentAdmitted, asked: e.Monotonic}, now)
	a.keys.setUses(e.Uses...)
}

// Resume completes a replay, after the newest event of the log. now.Monotonic is the newest monotonic time in the log.
// All leases count as spent, and all requests possibly admitted in the last minute count as admitted now. So the limits
// hold even after a crash.
func (a *Account) Resume(now ClockReading) {
	a.days.spendAll()
	a.asking, a.keysPending, a.askedAt, a.lastLeaseSize, a.ownTokens = false, 0, now.Monotonic, 0, nil
	a.minute = minuteWindow{admitted: a.firstAdmitted[:0], restored: a.single.admittedSingle(now.Monotonic), restoredAt: now.Monotonic}
	a.resumeNodeLeases(now)
}

// NextLease returns the event of the next lease, or nil if none is needed or possible. waiting is the number of
// requests that wait for a lease. A lease is needed when requests wait, or when at most half of a lease is unspent.
// Requests of leases that this node may no longer spend are leased again first, without another charge to the day. The
// leases of a day never exceed the day's quota. In a cluster the event asks the leader, which calls Grant. The caller
// must then call Apply or Abort.
func (a *Account) NextLease(digest Digest, now ClockReading, policy QuotaPolicy, waiting int) *Leased {
	day := a.today(now)
	if a.asking || a.closedDay(day, policy) {
		return nil
	}
	count := a.days.get(day)
	spendable := a.spendable(count, now)
	if waiting == 0 && (policy.LeaseSize <= 1 || a.node == 0 && spendable > max(policy.LeaseSize, a.lastLeaseSize)/2) {
		return nil
	}
	a.minute.expire(now)
	limits, others := a.quota(policy), a.nodeLeases.othersAdmittedMax(a.node, now.Monotonic)
	free := limits.Minute - a.minute.count() - others
	size := a.leaseSize(limits, limits.Day-count.leased, min(waiting, free), now, policy)
	if waiting == 0 && a.node != 0 && (spendable > size/2 || a.minute.count() < earlyRenewalMin) {
		return nil
	}
	total := size - spendable
	if others > 0 {
		total = min(total, fairShare(free-spendable))
	}
	void := max(0, min(total, count.unspent()-spendable))
	refunded := max(0, min(total-void, count.refunded))
	added := max(0, min(total-void-refunded, limits.Day-count.leased))
	if void+added == 0 && (waiting == 0 || refunded == 0 && count.granted == 0) {
		return nil
	}
	unspent := void + a.renewTokens(now, size)
	if a.node == 0 && count.granted > 0 {
		unspent -= count.unspent() // included in Count
	}
	a.lastLeaseSize, a.asking, a.askedAt = size, true, now.Monotonic
	lease := &Leased{
		Account: a.id, Day: day, Count: added + int(count.granted), Refunded: refunded, Unspent: unspent, Monotonic: now.Monotonic,
		At: plainUTC(now.Wall), Node: a.node, RecentAdmitted: a.minute.count(),
	}
	if key := a.keys.byDigest(digest); key != nil {
		lease.KeyID = key.id
	}
	return lease
}

// leaseSize returns the intended number of spendable requests after the next lease. left is the rest of the day's
// quota. With a LeaseSize of 1 each request is written to the log.
func (a *Account) leaseSize(limits Quota, left, waiting int, now ClockReading, policy QuotaPolicy) int {
	switch {
	case policy.LeaseSize <= 1:
		return max(1, waiting)
	case a.node == 0:
		return a.nextLeaseSize(policy.LeaseSize, now, left)
	}
	maximum := max(policy.LeaseSize, limits.Minute) // so that a fast account has a lease when the log has no leader for a few seconds
	return max(a.tokens().rate.nextSize(now.Monotonic, maximum), waiting)
}

// LeaseLow reports whether requests will soon have to wait for a lease: at most an eighth of the newest is unspent.
func (a *Account) LeaseLow(now ClockReading) bool {
	return a.spendable(a.days.get(a.today(now)), now) <= a.lastLeaseSize/8
}

// LeaseGrownMax is the maximum size of a grown lease (decision L1).
const LeaseGrownMax = 256

// nextLeaseSize returns the size of the next lease: twice the newest one if that was requested within the last second,
// otherwise initial. So an account with many requests seldom waits for the log, and a crash still costs at most one
// lease (decision L1). A grown lease is at most a tenth of the day's remaining requests.
func (a *Account) nextLeaseSize(initial int, now ClockReading, left int) int {
	if a.lastLeaseSize == 0 || now.Monotonic-a.askedAt >= time.Second {
		return initial
	}
	return max(initial, min(2*a.lastLeaseSize, LeaseGrownMax, left/10))
}

// Abort must be called if the event of NextLease or Return will not become durable. unknown tells that it may still
// become durable, although the caller no longer waits for it: what it returns then stays spent. Events that this
// process no longer waits for have no effect.
func (a *Account) Abort(event Event, unknown bool) {
	switch e := event.(type) {
	case *Leased:
		if !a.awaits(e.Node, e.Monotonic) {
			return
		}
		if t := a.ownTokens; t != nil {
			t.previousRate.spent += t.rate.spent
			t.rate, t.renewing, a.lastLeaseSize = t.previousRate, 0, t.previousRate.size
		}
		a.asking = false
	case *Returned:
		if !a.awaits(e.Node, e.Monotonic) {
			return
		}
		if count := a.days.find(e.Day); count != nil && !unknown {
			count.spent = max(0, count.spent-e.Unspent)
		}
		a.asking = false
	}
}

// Refund takes back one request. admittedAt is the clock reading of its admission, from WithDay. A request admitted
// before the newest NextLease can be spent again only after the next lease, which writes the refund to the log.
// Otherwise more requests could be admitted in a minute than the log shows.
func (a *Account) Refund(admittedAt ClockReading) {
	a.minute.refund(admittedAt)
	switch count := a.days.find(admittedAt.today()); {
	case count == nil || count.charged() <= 0:
	case admittedAt.Monotonic > a.askedAt:
		count.spent--
		if a.node != 0 {
			a.tokens().tokens++
		}
	default:
		count.refunded++
	}
}

// Return returns the event that gives back unspent requests, or nil if there is nothing to record. The next request
// then needs another lease. The caller must call Apply or Abort. Danger: a lease being written to the log is not given
// back; wait for it first.
func (a *Account) Return(now ClockReading) *Returned {
	a.minute.expire(now)
	day := a.today(now)
	if newest := a.days.get(a.days.newest()); newest.granted > 0 {
		day = newest.day // so that its grant can be taken back
	}
	event := &Returned{
		Account: a.id, Day: day, RecentAdmitted: a.minute.count(), Monotonic: now.Monotonic,
		Uses: a.keys.newUses(), Node: a.node,
	}
	if count := a.days.find(event.Day); count != nil {
		event.Unspent, event.Granted = count.leased-count.charged(), int(count.granted)
	}
	a.days.spendAll()
	if a.ownTokens != nil {
		a.ownTokens.tokens = 0
	}
	if event.Unspent == 0 && event.Granted == 0 && len(event.Uses) == 0 && a.lease(a.node).Count == 0 {
		return nil
	}
	a.asking, a.askedAt = true, now.Monotonic
	return event
}

// NextReturn returns the event that gives back the lease of an idle account, so that other nodes can lease the
// requests. It returns nil if there is no need. Call it every few seconds in a cluster, and then call Apply or
// Abort.
func (a *Account) NextReturn(now ClockReading) *Returned {
	if a.node == 0 || a.asking || now.Monotonic-a.askedAt < idleReturnAfter {
		return nil
	}
	a.minute.expire(now)
	if n := a.minute.count(); n > 0 && now.Monotonic-a.minute.at(n-1) < idleReturnAfter {
		return nil
	}
	if count := a.days.get(a.today(now)); count.leased == count.charged() && a.lease(a.node).Count < spentReturnMin {
		return nil
	}
	return a.Return(now)
}
