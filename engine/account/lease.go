package account

import "time"

// leaseMergeSpan is how close leases share one mark. It bounds the marks of an account that leases each request by itself.
const leaseMergeSpan = 5 * time.Second

// recordLease remembers a lease. What was leased more than a minute ago may have been spent a moment ago; but the newest mark that is older
// than a minute speaks for all before it, so that they are forgotten.
func (a *Account) recordLease(next LeaseState) {
	if n := len(a.leases); n > 0 && a.leases[n-1].Steady/leaseMergeSpan == next.Steady/leaseMergeSpan {
		a.leases[n-1].Steady = next.Steady
		a.leases[n-1].Count += next.Count
	} else {
		a.leases = append(a.leases, next)
	}
	spoken := 0
	for spoken+1 < len(a.leases) && next.Steady-a.leases[spoken+1].Steady >= MinuteSpan {
		spoken++
	}
	a.leases = a.leases[:copy(a.leases, a.leases[spoken:])]
}

// recentAdmittedMax is the most that may have been admitted in the minute before a moment.
func (a *Account) recentAdmittedMax(now time.Duration) int {
	from, sum := 0, 0
	for i, mark := range a.leases {
		if now-mark.Steady >= MinuteSpan {
			from = i
		}
	}
	for i, mark := range a.leases[from:] {
		if i == 0 {
			sum = mark.Unspent
		}
		sum += mark.Count
	}
	return sum
}

// applyLease applies Leased.
func (a *Account) applyLease(e *Leased) {
	a.leasePending = false
	if count := a.days.getOrCreate(e.Day); count != nil {
		count.leased += e.Count
		again := min(e.Refunded, count.refunded)
		count.refunded -= again
		count.spent -= again
	}
	if e.Node == 0 {
		a.recordLease(LeaseState{Steady: e.Steady, Unspent: e.Unspent, Count: e.Count + e.Refunded})
	} else {
		a.applyNodeLease(e)
	}
	a.setKeyUse(e.KeyID, e.At)
}

// applyReturn applies Returned. Of what was leased nothing is left; the requests of the last minute count until they are a minute old,
// which the mark behind them says.
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
	for _, use := range e.Uses {
		a.setKeyUse(use.KeyID, use.At)
	}
}

// Resume begins to count in a new process, after the last event of the log; now.Steady is the newest steady time in the log, from
// where the new process goes on. What was leased counts as spent. Requests that may have been admitted in the last minute before the
// crash count as admitted now: a crash never opens a window (L1, L2).
func (a *Account) Resume(now ClockReading) {
	for i := range a.days.counts {
		count := &a.days.counts[i]
		count.spent, count.refunded = count.leased, 0
	}
	a.leasePending, a.keysPending, a.leaseAskedAt, a.tokenLease = false, 0, now.Steady, tokenLease{}
	a.minute = minuteWindow{}
	for range a.recentAdmittedMax(now.Steady) {
		a.minute.add(now)
	}
	a.resumeNodeLeases(now)
}

// NextLease is the lease to ask the log for, nil while there is no need: as many as make one lease unspent, asked for before the last
// one is used up, and never beyond the day's limit. waiting is how many requests wait for it. A lease of one takes all that wait at
// once: then a crash costs the account no more than its requests in flight. In a cluster it is one that leaves room for other nodes.
func (a *Account) NextLease(digest Digest, now ClockReading, terms QuotaPolicy, waiting int) *Leased {
	if a.node != 0 {
		return a.nextClusterLease(digest, now, terms, waiting)
	}
	day, size := a.today(now), max(1, terms.LeaseSize)
	count, limits := a.days.get(day), a.quota(terms)
	if a.leasePending || a.days.closed(day) || waiting == 0 && (size == 1 || count.unspent() > size/2) {
		return nil
	}
	if size == 1 {
		a.minute.expire(now)
		size = max(1, min(waiting, a.minute.window(limits.Minute, now).Remaining))
	}
	want := max(0, size-count.unspent())
	again := min(want, count.refunded)
	want = max(0, min(want-again, limits.Day-count.leased))
	if want == 0 && (again == 0 || waiting == 0) {
		return nil
	}
	key, _ := a.Key(digest)
	lease := &Leased{
		Account: a.record.ID, Day: day, Count: want, Refunded: again, Unspent: a.unspent(), Steady: now.Steady, KeyID: key.ID,
		At: plainUTC(now.Wall),
	}
	a.leasePending, a.leaseAskedAt = true, now.Steady
	return lease
}

// AbortLease says that the lease asked for did not become durable and never will: also one that is void, because it was decided before an
// event of another node.
func (a *Account) AbortLease() {
	p := &a.tokenLease
	p.previousRate.spent += p.rate.spent
	a.leasePending, p.rate, p.renewing = false, p.previousRate, 0
}

// unspent is what may be spent of all days.
func (a *Account) unspent() int {
	sum := 0
	for _, count := range a.days.counts {
		sum += count.unspent()
	}
	return sum
}

// Refund takes an admission back: it costs nothing (L6). at is the moment of the admission, WithDay then. What was admitted before the newest lease
// was asked for is spent again only after the next one, which says so in the log: else more could be admitted within a minute than
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

// Return is what a clean stop gives back, nil when there is nothing to say. Its outcome is Apply or AbortReturn. Nothing is admitted afterwards without another lease. Danger:
// a lease that is still on its way into the log is not given back; wait for it first.
func (a *Account) Return(now ClockReading) *Returned {
	a.minute.expire(now)
	event := &Returned{
		Account: a.record.ID, Day: a.today(now), RecentAdmitted: len(a.minute.active()), Steady: now.Steady, Uses: a.newKeyUses(), Node: a.node,
	}
	if count := a.days.find(event.Day); count != nil {
		event.Unspent = count.leased - count.charged()
	}
	for i := range a.days.counts {
		count := &a.days.counts[i]
		count.spent, count.refunded = count.leased, 0
	}
	a.tokenLease.tokens = 0
	if event.Unspent == 0 && len(a.leases) == 0 && len(event.Uses) == 0 && a.ownNodeLease().Count == 0 {
		return nil
	}
	if a.node != 0 {
		a.leaseAskedAt, a.tokenLease.returnPending = now.Steady, true
	}
	return event
}
