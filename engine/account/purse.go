package account

import "time"

// How a node of a cluster leases.
const (
	// leasePace is for how long a lease should last, as fast as the account asks.
	leasePace = 20 * time.Second
	// leaseAheadMin is the least lease that is renewed before it is used up. What is asked for less often waits for the log, and leaves
	// nothing behind that would have to be returned.
	leaseAheadMin = 4
	// returnAfter is how long a node rests from an account before it returns what it has not spent.
	returnAfter = 15 * time.Second
	// returnMin is how much the others must count of this node's lease to be told that it is spent.
	returnMin = 8
)

// purse is what a node of a cluster may spend, and how fast it did.
type purse struct {
	tokens    int           // of what it leased: the log says that it may spend them
	until     time.Duration // steady; they are void from then on
	over      time.Time     // wall time; the same, for a machine that slept, whose steady time may not have gone on
	stated    int           // of tokens, those in the lease that is on its way
	returning bool          // a return is on its way into the log
	pace      tempo
	before    tempo // the lease that is on its way
}

// tempo is how fast a lease was spent.
type tempo struct {
	since time.Duration // steady: when it was asked for
	size  int
	spent int // since then
}

// next is how much to lease now, at most so much: as much as the account would spend in leasePace, and at most twice the last lease.
func (p tempo) next(now time.Duration, most int) int {
	span := max(time.Second, now-p.since)
	expected := (p.spent*int(leasePace/time.Millisecond) + int(span/time.Millisecond) - 1) / int(span/time.Millisecond)
	return max(1, min(expected, 2*p.size, most))
}

// spendable is what may be spent of a day at once.
func (a *Account) spendable(count dayCount, now Moment) int {
	switch {
	case a.node == 0:
		return count.unspent()
	case now.Steady >= a.purse.until || !now.Wall.Before(a.purse.over):
		return 0
	}
	return min(a.purse.tokens, count.unspent())
}

// nextShare is NextLease in a cluster. A node leases by the account's pace; when others have a share of the minute at most half of what is
// free, and at least one. What it has leased before and may spend no more it takes up first: that costs the day nothing.
func (a *Account) nextShare(digest Digest, now Moment, terms Terms, waiting int) *Leased {
	day := a.today(now)
	if a.asking || a.days.closed(day) {
		return nil
	}
	a.minute.expire(now)
	limits, count := a.allowance(terms), a.days.peek(day)
	live := a.spendable(count, now)
	size := a.appetite(limits.Minute, now, terms, waiting)
	if waiting == 0 && (size < leaseAheadMin || live > size/2) {
		return nil
	}
	want := min(size-live, a.fair(limits.Minute, live, now))
	taken := max(0, min(want, count.unspent()-live))
	again := max(0, min(want-taken, count.refunded))
	fresh := max(0, min(want-taken-again, limits.Day-count.leased))
	if taken+fresh == 0 && (again == 0 || waiting == 0) {
		return nil
	}
	stated := a.days.peek(a.days.newest())
	a.purse.stated = a.spendable(stated, now)
	a.purse.tokens = a.purse.stated
	key, _ := a.Key(digest)
	lease := &Leased{
		Account: a.record.ID, Day: day, Count: fresh, Refunded: again, Unspent: a.purse.stated + taken, Steady: now.Steady, KeyID: key.ID,
		At: universal(now.Wall), Node: a.node, Recent: len(a.minute.inside()),
	}
	a.purse.before, a.purse.pace = a.purse.pace, tempo{since: now.Steady, size: size}
	a.asking, a.fence = true, now.Steady
	return lease
}

// appetite is how much the account would like to have leased.
func (a *Account) appetite(limit int, now Moment, terms Terms, waiting int) int {
	free := limit - len(a.minute.inside()) - a.others(now.Steady)
	return max(a.purse.pace.next(now.Steady, max(1, terms.Lease)), min(waiting, free))
}

// fair is how much more this node should lease. While nobody else has a share it may lease ahead of the minute, which Windows holds anyway.
func (a *Account) fair(limit, live int, now Moment) int {
	others := a.others(now.Steady)
	if others == 0 {
		return limit
	}
	return (max(0, limit-len(a.minute.inside())-others-live) + 1) / 2
}

// leaseShare applies a lease of this node.
func (a *Account) leaseShare(e *Leased) {
	p := &a.purse
	p.tokens += e.Unspent - p.stated + e.Count + e.Refunded
	p.stated, p.until, p.over = 0, e.Steady+LeaseSpan, e.At.Add(LeaseSpan)
	a.say(LeaseState{Node: e.Node, Steady: e.Steady, Recent: e.Recent, Count: e.Unspent + e.Count + e.Refunded})
}

// NextReturn is what to tell the log of an account that this node rests from, nil while there is no need: then the others get what it has
// not spent. In a cluster ask for it every few seconds. Its outcome is Apply or ReturnLost; what is admitted meanwhile needs another lease.
func (a *Account) NextReturn(now Moment) *Returned {
	if a.node == 0 || a.asking || a.purse.returning || now.Steady-a.fence < returnAfter {
		return nil
	}
	a.minute.expire(now)
	if inside := a.minute.inside(); len(inside) > 0 && now.Steady-inside[len(inside)-1] < returnAfter {
		return nil
	}
	if count := a.days.peek(a.today(now)); count.leased == count.charged() && a.said().Count < returnMin {
		return nil
	}
	return a.Return(now)
}

// ReturnLost says that a return did not become durable and never will. What it would have given back is void until it is leased again.
func (a *Account) ReturnLost(e *Returned) {
	a.purse.returning = false
	if count := a.days.find(e.Day); count != nil {
		count.spent = max(0, count.spent-e.Unspent)
	}
}
