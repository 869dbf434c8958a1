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
	tokens       int
	until        time.Duration // monotonic time (ClockReading.Monotonic) after which the tokens are void
	untilWall    time.Time     // the same in wall clock time, because monotonic time stops while the machine is suspended
	renewing     int           // unspent tokens included in the lease being written to the log
	rate         spendRate
	previousRate spendRate // the rate to restore if the lease being written to the log is aborted
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

// renewTokens begins a lease of a size, and returns the unspent requests of earlier leases that it includes.
func (a *Account) renewTokens(now ClockReading, size int) int {
	if a.node == 0 {
		return a.days.unspent()
	}
	t := a.tokens()
	t.renewing = a.spendable(a.days.get(a.days.newest()), now)
	t.tokens = t.renewing
	t.previousRate, t.rate = t.rate, spendRate{since: now.Monotonic, size: size}
	return t.renewing
}

// addTokens adds the requests of a lease to the tokens of this node, when the lease is in the log. added is the part of
// Leased.Count that does not count as spent already (chargeEarlierGrant).
func (a *Account) addTokens(e *Leased, added int) {
	if a.node == 0 {
		return
	}
	t := a.tokens()
	t.tokens += e.Unspent - t.renewing + added + e.Refunded
	t.renewing, t.until, t.untilWall = 0, e.Monotonic+LeaseSpan, e.At.Add(LeaseSpan)
}
