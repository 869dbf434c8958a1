package account

import "time"

// leaseMergeSpan is how close leases are merged into one LeaseState. It bounds their number when each request is leased
// by itself.
const leaseMergeSpan = 5 * time.Second

// recordLease adds a lease. Requests of any lease may have been admitted a moment ago, but of all leases older than a
// minute only the newest is kept, because its Unspent bounds what was left of those before.
func (a *Account) recordLease(next LeaseState) {
	if n := len(a.leases); n > 0 && a.leases[n-1].Steady/leaseMergeSpan == next.Steady/leaseMergeSpan {
		a.leases[n-1].Steady = next.Steady
		a.leases[n-1].Count += next.Count
	} else {
		a.leases = append(a.leases, next)
	}
	first := 0
	for first+1 < len(a.leases) && next.Steady-a.leases[first+1].Steady >= MinuteSpan {
		first++
	}
	a.leases = a.leases[:copy(a.leases, a.leases[first:])]
}

// recentAdmittedMax returns how many requests may have been admitted in the last minute at most.
func (a *Account) recentAdmittedMax(now time.Duration) int {
	first, sum := 0, 0
	for i, lease := range a.leases {
		if now-lease.Steady >= MinuteSpan {
			first = i
		}
	}
	for i, lease := range a.leases[first:] {
		if i == 0 {
			sum = lease.Unspent
		}
		sum += lease.Count
	}
	return sum
}

func (a *Account) applyLease(e *Leased) {
	a.leasePending = false
	if count := a.days.getOrCreate(e.Day); count != nil {
		count.leased += e.Count
		refunded := min(e.Refunded, count.refunded)
		count.refunded -= refunded
		count.spent -= refunded
	}
	if e.Node == 0 {
		a.recordLease(LeaseState{Steady: e.Steady, Unspent: e.Unspent, Count: e.Count + e.Refunded})
	} else {
		a.applyNodeLease(e)
	}
	a.setKeyUses(KeyUse{e.KeyID, e.At})
}

// applyReturn keeps only the requests of the last minute, which count until they are a minute old.
func (a *Account) applyReturn(e *Returned) {
	if count := a.days.find(e.Day); count != nil {
		count.leased = max(0, count.leased-e.Unspent)
		count.spent = min(count.spent, count.leased)
	}
	a.tokenLease.returnPending = false
	if e.Node != 0 {
		a.setNodeLease(LeaseState{Node: e.Node, Steady: e.Steady, RecentAdmitted: e.RecentAdmitted})
	} else {
		a.leases, a.nodeLeases = nil, nil
		if e.RecentAdmitted > 0 {
			a.leases = []LeaseState{{Steady: e.Steady, Count: e.RecentAdmitted}, {Steady: e.Steady}}
		}
	}
	a.setKeyUses(e.Uses...)
}

// Resume starts counting in a new process, after the last event of the log. now.Steady is the newest steady time in the
// log. All leases count as spent, and requests that may have been admitted in the last minute count as admitted now, so
// that a crash never lets more through than the limits.
func (a *Account) Resume(now ClockReading) {
	a.days.spendAll()
	a.leasePending, a.keysPending, a.leaseAskedAt, a.tokenLease = false, 0, now.Steady, tokenLease{}
	a.minute = minuteWindow{}
	for range a.recentAdmittedMax(now.Steady) {
		a.minute.add(now)
	}
	a.resumeNodeLeases(now)
}

// NextLease decides the next lease, nil while none is needed. It is asked for when half of the last one is spent, and
// never exceeds the day's quota. waiting is how many requests wait for it; with a LeaseSize of 1 it is for all of them.
// The outcome must be reported by Apply or AbortLease.
func (a *Account) NextLease(digest Digest, now ClockReading, policy QuotaPolicy, waiting int) *Leased {
	if a.node != 0 {
		return a.nextClusterLease(digest, now, policy, waiting)
	}
	day, size := a.today(now), max(1, policy.LeaseSize)
	count, limits := a.days.get(day), a.quota(policy)
	if a.leasePending || a.days.closed(day) || waiting == 0 && (size == 1 || count.unspent() > size/2) {
		return nil
	}
	if size == 1 {
		a.minute.expire(now)
		size = max(1, min(waiting, a.minute.window(limits.Minute, now).Remaining))
	}
	wanted := max(0, size-count.unspent())
	refunded := min(wanted, count.refunded)
	fresh := max(0, min(wanted-refunded, limits.Day-count.leased))
	if fresh == 0 && (refunded == 0 || waiting == 0) {
		return nil
	}
	return a.newLease(Leased{Day: day, Count: fresh, Refunded: refunded, Unspent: a.unspent()}, digest, now)
}

// newLease completes a lease and marks it as pending.
func (a *Account) newLease(lease Leased, digest Digest, now ClockReading) *Leased {
	key, _ := a.Key(digest)
	lease.Account, lease.Node, lease.KeyID = a.record.ID, a.node, key.ID
	lease.Steady, lease.At = now.Steady, plainUTC(now.Wall)
	a.leasePending, a.leaseAskedAt = true, now.Steady
	return &lease
}

// AbortLease reports that the event of NextLease will not become durable.
func (a *Account) AbortLease() {
	t := &a.tokenLease
	t.previousRate.spent += t.rate.spent
	a.leasePending, t.rate, t.renewing = false, t.previousRate, 0
}

// unspent returns what is left of all days.
func (a *Account) unspent() int {
	sum := 0
	for _, count := range a.days.counts {
		sum += count.unspent()
	}
	return sum
}

// Refund takes an admission back. at is the time of the admission (WithDay). A request from before the last NextLease
// can be spent again only after the next lease, which tells the log: otherwise more could be admitted in a minute than
// the log accounts for.
func (a *Account) Refund(at ClockReading) {
	a.minute.refund(at)
	switch count := a.days.find(at.today()); {
	case count == nil || count.charged() <= 0:
	case at.Steady > a.leaseAskedAt:
		count.spent--
		if a.node != 0 {
			a.tokenLease.tokens++
		}
	default:
		count.refunded++
	}
}

// Return decides to give back what is not spent, nil when there is nothing to report. After it nothing is admitted
// without another lease. The outcome must be reported by Apply or AbortReturn. Danger: a lease that is being written is
// not given back; wait for it first.
func (a *Account) Return(now ClockReading) *Returned {
	a.minute.expire(now)
	event := &Returned{
		Account: a.record.ID, Day: a.today(now), RecentAdmitted: len(a.minute.active()), Steady: now.Steady,
		Uses: a.appendKeyUses(nil), Node: a.node,
	}
	if count := a.days.find(event.Day); count != nil {
		event.Unspent = count.leased - count.charged()
	}
	a.days.spendAll()
	a.tokenLease.tokens = 0
	if event.Unspent == 0 && len(a.leases) == 0 && len(event.Uses) == 0 && a.ownNodeLease().Count == 0 {
		return nil
	}
	if a.node != 0 {
		a.leaseAskedAt, a.tokenLease.returnPending = now.Steady, true
	}
	return event
}
