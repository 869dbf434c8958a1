package account

import "github.com/tasard/tasard/engine"

// QuotaPolicy are what the node grants, and how it keeps the books.
type QuotaPolicy struct {
	DefaultQuota Quota // of whoever has none of its own
	LeaseSize    int   // requests taken from the log at once; 1 = every request is durable before it is answered
}

// Need says what an admission lacks.
type Need int

// The needs of an admission.
const (
	Nothing     Need = iota // the verdict stands
	LeaseNeeded             // nothing leased is left: ask again when the lease is durable
)

func (a *Account) quota(terms QuotaPolicy) Quota {
	own := a.record.Quota
	if own.Day == 0 {
		own.Day = terms.DefaultQuota.Day
	}
	if own.Minute == 0 {
		own.Minute = terms.DefaultQuota.Minute
	}
	return own
}

// Admit asks for one request now in the name of a key (L1, L2). With LeaseNeeded nothing is decided yet: ask again when the lease is
// durable, at the moment that it is then. An admission is charged at once; Refund takes it back when the answer turns out to cost
// nothing (L6).
func (a *Account) Admit(digest Digest, now ClockReading, terms QuotaPolicy) (QuotaResult, Need) {
	key, violated := a.authenticate(digest)
	if violated != "" {
		return QuotaResult{DenyCode: violated}, Nothing
	}
	verdict := a.Usage(now, terms)
	if !verdict.Admitted {
		return verdict, Nothing
	}
	count := a.days.find(a.today(now))
	if count == nil || a.spendable(*count, now) <= 0 {
		return QuotaResult{}, LeaseNeeded
	}
	key.used = plainUTC(now.Wall)
	count.spent++
	if a.node != 0 {
		a.tokenLease.tokens--
		a.tokenLease.rate.spent++
	}
	a.minute.add(now)
	verdict.charge()
	return verdict, Nothing
}

// authenticate finds the key of a digest, or the code that refuses it.
func (a *Account) authenticate(digest Digest) (*accountKey, engine.Code) {
	switch key := a.byDigest(digest); {
	case key == nil:
		return nil, engine.CodeInvalidKey
	case !key.record.Active():
		return nil, engine.CodeRevokedKey
	case !a.record.SuspendedAt.IsZero():
		return nil, engine.CodeAccountSuspended
	default:
		return key, ""
	}
}

// today is the day that a moment counts for. It never goes back: with a clock that was set back, all counts for the latest day that
// the account has leased from, which the log knows, until the clock has passed it. So no step opens a day twice (L1). An instant outside
// the calendar has no day.
func (a *Account) today(now ClockReading) engine.Date {
	if day := now.today(); day != 0 {
		return max(day, a.days.newest())
	}
	return 0
}

// WithDay is a moment with the day that it counts for, as Refund wants it.
func (a *Account) WithDay(now ClockReading) ClockReading {
	now.Day = a.today(now)
	return now
}

// Usage are both windows as they stand, without a request (usage, refusals of other kinds); Admitted says whether one more fits. A
// closed day has no room. In a cluster they are what this node can know: what others have leased counts as used, and what they
// leased a moment ago it may not have heard yet.
func (a *Account) Usage(now ClockReading, terms QuotaPolicy) QuotaResult {
	a.minute.expire(now)
	limits, today := a.quota(terms), a.today(now)
	room := max(0, limits.Day-a.days.get(today).charged())
	if a.days.closed(today) {
		room = 0
	}
	return quotaResultOf(Window{limits.Day, room, (today + 1).Start()}, a.clusterMinute(limits.Minute, now), now.Wall)
}

// Idle reports that the account needs no actor: nothing is in flight and the minute is empty, whose memory it lets go.
func (a *Account) Idle(now ClockReading) bool {
	return !a.leasePending && !a.tokenLease.returnPending && a.keysPending == 0 && a.minute.idle(now)
}
