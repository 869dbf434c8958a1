package account

import "github.com/tasard/tasard/engine"

// QuotaPolicy is what a node grants.
type QuotaPolicy struct {
	DefaultQuota Quota // of accounts without their own
	LeaseSize    int   // requests of one lease; 1 = every request is durable before it is answered
}

func (a *Account) quota(policy QuotaPolicy) Quota {
	own := a.record.Quota
	if own.Day == 0 {
		own.Day = policy.DefaultQuota.Day
	}
	if own.Minute == 0 {
		own.Minute = policy.DefaultQuota.Minute
	}
	return own
}

// Admit admits one request with a key, or refuses it. When it needs a lease it decides nothing: call it again after the
// lease is durable, with the time that it is then. An admitted request is charged at once; Refund takes the charge
// back.
func (a *Account) Admit(digest Digest, now ClockReading, policy QuotaPolicy) (result QuotaResult, needsLease bool) {
	key, denied := a.authenticate(digest)
	if denied != "" {
		return QuotaResult{DenyCode: denied}, false
	}
	result = a.Usage(now, policy)
	if !result.Admitted {
		return result, false
	}
	count := a.days.find(a.today(now))
	if count == nil || a.spendable(*count, now) <= 0 {
		return QuotaResult{}, true
	}
	key.used = plainUTC(now.Wall)
	count.spent++
	if a.node != 0 {
		a.tokenLease.tokens--
		a.tokenLease.rate.spent++
	}
	a.minute.add(now)
	result.charge()
	return result, false
}

// authenticate returns the active key with a digest, or the code that denies it.
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

// today returns the day that a request counts for, no date outside the calendar. It never goes back: when the clock was
// set back, it is the latest day of which something was leased, so that no step of the clock opens a day twice.
func (a *Account) today(now ClockReading) engine.Date {
	if day := now.today(); day != 0 {
		return max(day, a.days.newest())
	}
	return 0
}

// WithDay returns the reading with the day that the account counts for, as Refund needs it.
func (a *Account) WithDay(now ClockReading) ClockReading {
	now.Day = a.today(now)
	return now
}

// Usage returns both windows without charging a request; Admitted says whether one more fits. In a cluster it counts
// what other nodes have leased as used, as far as their leases have arrived here.
func (a *Account) Usage(now ClockReading, policy QuotaPolicy) QuotaResult {
	a.minute.expire(now)
	limits, today := a.quota(policy), a.today(now)
	remaining := max(0, limits.Day-a.days.get(today).charged())
	if a.days.closed(today) {
		remaining = 0
	}
	return quotaResultOf(Window{limits.Day, remaining, (today + 1).Start()}, a.clusterMinute(limits.Minute, now), now.Wall)
}

// Idle reports that the account can be evicted: nothing is being written and the minute is empty.
func (a *Account) Idle(now ClockReading) bool {
	return !a.leasePending && !a.tokenLease.returnPending && a.keysPending == 0 && a.minute.idle(now)
}
