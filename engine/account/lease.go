package account

import "time"

// Leases (reserved parts of a daily quota) taken within leaseMergeSpan are merged into one LeaseState. This bounds the
// number of LeaseStates when each request has its own lease. The span is of monotonic time (ClockReading.Monotonic).
const leaseMergeSpan = 5 * time.Second

// recentLease is a LeaseState of an account without a cluster, in less memory.
type recentLease struct {
	at             time.Duration
	unspent, count int32
}

// recentLeases are the leases of an account, oldest first.
type recentLeases []recentLease

// add adds a lease. It drops leases older than a minute, except the newest of those: requests of that lease may have
// been admitted in the last minute. The unspent requests of the dropped leases are included in its field unspent.
func (l *recentLeases) add(lease recentLease) {
	if n := len(*l); n > 0 && (*l)[n-1].at/leaseMergeSpan == lease.at/leaseMergeSpan {
		(*l)[n-1].at = lease.at
		(*l)[n-1].count += lease.count
	} else {
		*l = append(*l, lease)
	}
	first := 0
	for first+1 < len(*l) && lease.at-(*l)[first+1].at >= MinuteSpan {
		first++
	}
	*l = (*l)[:copy(*l, (*l)[first:])]
}

// admittedMax returns an upper bound of the requests admitted in the last minute.
func (l recentLeases) admittedMax(now time.Duration) int {
	first, sum := 0, 0
	for i, lease := range l {
		if now-lease.at >= MinuteSpan {
			first = i
		}
	}
	for i, lease := range l[first:] {
		if i == 0 {
			sum = int(lease.unspent)
		}
		sum += int(lease.count)
	}
	return sum
}

func (a *Account) applyLease(e *Leased) {
	a.leasePending = false
	granted := 0
	if count := a.days.getOrCreate(e.Day); count != nil {
		granted = int(count.granted)
		count.leased += e.Count - granted
		count.granted = 0
		refunded := min(e.Refunded, count.refunded)
		count.refunded -= refunded
		count.spent -= refunded
	}
	if e.Node == 0 {
		a.leases.add(recentLease{e.Monotonic, int32(e.Unspent), int32(e.Count + e.Refunded)})
	} else {
		a.applyNodeLease(e, granted)
	}
	a.keys.setUses(KeyUse{e.KeyID, e.At})
}

// applyReturn gives unspent requests back to the day, and removes the leases. Requests admitted in the last minute
// still count until they are a minute old.
func (a *Account) applyReturn(e *Returned) {
	if e.Granted > 0 {
		a.days.getOrCreate(e.Day)
	}
	if count := a.days.find(e.Day); count != nil {
		count.leased = max(0, count.leased+e.Granted-int(count.granted)-e.Unspent)
		count.granted = 0
		count.spent = min(count.spent, count.leased)
	}
	if e.Node != 0 {
		a.tokens().returnPending = false
		a.setNodeLease(LeaseState{Node: e.Node, Monotonic: e.Monotonic, RecentAdmitted: e.RecentAdmitted, asked: e.Monotonic})
	} else {
		a.leases, a.nodeLeases = nil, nil
		if e.RecentAdmitted > 0 {
			a.leases = append(a.firstLeases[:0], recentLease{e.Monotonic, 0, int32(e.RecentAdmitted)}, recentLease{e.Monotonic, 0, 0})
		}
	}
	a.keys.setUses(e.Uses...)
}

// Resume completes a replay, after the newest event of the log. now.Monotonic is the newest monotonic time in the log.
// All leases count as spent, and all requests possibly admitted in the last minute count as admitted now. So the limits
// hold even after a crash.
func (a *Account) Resume(now ClockReading) {
	a.days.spendAll()
	a.leasePending, a.keysPending, a.leaseAskedAt, a.lastLeaseSize, a.ownTokens = false, 0, now.Monotonic, 0, nil
	a.minute = minuteWindow{admitted: a.firstAdmitted[:0], restored: a.leases.admittedMax(now.Monotonic), restoredAt: now.Monotonic}
	a.resumeNodeLeases(now)
}

// NextLease returns the event of the next lease, or nil if none is needed or possible. waiting is the number of
// requests that wait for a lease. A lease is needed when requests wait, or when at most half of the newest lease is
// unspent. With a LeaseSize of 1 it is for all waiting requests. The leases of a day never exceed the day's quota. The
// caller must then call Apply or AbortLease.
func (a *Account) NextLease(digest Digest, now ClockReading, policy QuotaPolicy, waiting int) *Leased {
	if a.node != 0 {
		return a.nextClusterLease(digest, now, policy, waiting)
	}
	day, size := a.today(now), max(1, policy.LeaseSize, a.lastLeaseSize)
	count, limits := a.days.get(day), a.quota(policy)
	if a.leasePending || a.closedDay(day, policy) || waiting == 0 && (policy.LeaseSize <= 1 || count.unspent() > size/2) {
		return nil
	}
	if policy.LeaseSize <= 1 {
		a.minute.expire(now)
		size = max(1, min(waiting, a.minute.window(limits.Minute, now).Remaining))
	} else {
		size = a.nextLeaseSize(policy.LeaseSize, now, limits.Day-count.leased)
	}
	total := max(0, size-count.unspent())
	refunded := min(total, count.refunded)
	added := max(0, min(total-refunded, limits.Day-count.leased))
	if added == 0 && (waiting == 0 || refunded == 0 && count.granted == 0) {
		return nil
	}
	a.lastLeaseSize = size
	unspent := a.days.unspent()
	if count.granted > 0 {
		unspent -= count.unspent() // included in Count
	}
	return a.newLease(Leased{Day: day, Count: added + int(count.granted), Refunded: refunded, Unspent: unspent}, digest, now)
}

// LeaseLow reports whether requests will soon have to wait for a lease: at most an eighth of the newest is unspent.
func (a *Account) LeaseLow(now ClockReading) bool {
	size := a.lastLeaseSize
	if a.node != 0 {
		size = a.tokens().rate.size
	}
	return a.spendable(a.days.get(a.today(now)), now) <= size/8
}

// LeaseGrownMax is the maximum size of a grown lease (decision L1).
const LeaseGrownMax = 256

// nextLeaseSize returns the size of the next lease: twice the newest one if that was requested within the last second,
// otherwise initial. So an account with many requests seldom waits for the log, and a crash still costs at most one
// lease (decision L1). A grown lease is at most a tenth of the day's remaining requests.
func (a *Account) nextLeaseSize(initial int, now ClockReading, left int) int {
	if a.lastLeaseSize == 0 || now.Monotonic-a.leaseAskedAt >= time.Second {
		return initial
	}
	return max(initial, min(2*a.lastLeaseSize, LeaseGrownMax, left/10))
}

// newLease completes the fields of a lease, and marks the account's lease as pending.
func (a *Account) newLease(lease Leased, digest Digest, now ClockReading) *Leased {
	if key := a.keys.byDigest(digest); key != nil {
		lease.KeyID = key.id
	}
	lease.Account, lease.Node = a.id, a.node
	lease.Monotonic, lease.At = now.Monotonic, plainUTC(now.Wall)
	a.leasePending, a.leaseAskedAt = true, now.Monotonic
	return &lease
}

// AbortLease must be called if NextLease's event will not become durable. A node of a cluster also calls it if it no
// longer waits for the lease, although the event may still become durable.
func (a *Account) AbortLease() {
	a.leasePending = false
	if t := a.ownTokens; t != nil {
		t.previousRate.spent += t.rate.spent
		t.rate, t.renewing = t.previousRate, 0
	}
}

// Refund takes back one request. admittedAt is the clock reading of its admission, from WithDay. A request admitted
// before the newest NextLease can be spent again only after the next lease, which writes the refund to the log.
// Otherwise more requests could be admitted in a minute than the log shows.
func (a *Account) Refund(admittedAt ClockReading) {
	a.minute.refund(admittedAt)
	switch count := a.days.find(admittedAt.today()); {
	case count == nil || count.charged() <= 0:
	case admittedAt.Monotonic > a.leaseAskedAt:
		count.spent--
		if a.node != 0 {
			a.tokens().tokens++
		}
	default:
		count.refunded++
	}
}

// Return returns the event that gives back unspent requests, or nil if there is nothing to record. The next request
// then needs another lease. The caller must call Apply or AbortReturn. Danger: a lease being written to the log is not
// given back; wait for it first.
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
	if event.Unspent == 0 && event.Granted == 0 && len(a.leases) == 0 && len(event.Uses) == 0 && a.nodeLeases.of(a.node).Count == 0 {
		return nil
	}
	if a.node != 0 {
		a.leaseAskedAt, a.tokens().returnPending = now.Monotonic, true
	}
	return event
}
