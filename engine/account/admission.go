package account

import "github.com/tasard/tasard/engine"

// QuotaPolicy is a node's settings for quotas. A lease is a reserved part of an account's daily quota.
type QuotaPolicy struct {
	DefaultQuota Quota      // quota of accounts without their own quota
	LeaseSize    int        // number of requests of a lease; 1 = every request is written to the log before its response
	Grants       *DayGrants // grants of days for the account; nil = none
}

func (a *Account) quota(policy QuotaPolicy) Quota {
	var quota Quota
	if a.special != nil {
		quota = a.special.quota
	}
	if quota.Day == 0 {
		quota.Day = policy.DefaultQuota.Day
	}
	if quota.Minute == 0 {
		quota.Minute = policy.DefaultQuota.Minute
	}
	return quota
}

// Admit admits and charges one request with an API key, or denies it. If needsLease is true, it has done neither: call
// Admit again with a new clock reading when a new lease is in the log. Refund reverts the charge of a request.
func (a *Account) Admit(digest Digest, now ClockReading, policy QuotaPolicy) (result QuotaResult, needsLease bool) {
	key, denied := a.authenticate(digest)
	if denied != "" {
		return QuotaResult{DenyCode: denied}, false
	}
	result = a.Usage(now, policy)
	if !result.Admitted {
		return result, false
	}
	today := a.today(now)
	a.takeGrant(today, policy)
	count := a.days.find(today)
	if count == nil || a.spendable(*count, now) <= 0 || count.granted > 0 && !policy.Grants.isNewest(a.id, today) {
		return QuotaResult{}, true
	}
	key.used = instantOf(now.Wall)
	count.spent++
	if a.node != 0 {
		t := a.tokens()
		t.tokens--
		t.rate.spent++
	}
	a.minute.add(now)
	result.charge()
	return result, false
}

// Authenticate returns the code that denies a key, or "" for a valid key.
func (a *Account) Authenticate(digest Digest) engine.Code {
	_, denied := a.authenticate(digest)
	return denied
}

// authenticate returns the active key with a digest, or the code that denies it.
func (a *Account) authenticate(digest Digest) (*accountKey, engine.Code) {
	switch key := a.keys.byDigest(digest); {
	case key == nil:
		return nil, engine.CodeInvalidKey
	case !key.active():
		return nil, engine.CodeRevokedKey
	case a.suspended():
		return nil, engine.CodeAccountSuspended
	default:
		return key, ""
	}
}

// today returns the day to charge: the current day or, after the clock was set back, the latest day with leased
// requests. So no request gets the quota of a day that has ended. Outside the years 1 to 9999 it returns the zero Date.
func (a *Account) today(now ClockReading) engine.Date {
	if day := now.today(); day != 0 {
		return max(day, a.days.newest())
	}
	return 0
}

// WithDay returns the clock reading with Day set to the charged day, for Refund.
func (a *Account) WithDay(now ClockReading) ClockReading {
	now.Day = a.today(now)
	return now
}

// Usage returns both quota windows (day and minute) without charging a request. Admitted tells whether one more request
// would be admitted. In a cluster the leases of other nodes count as used.
func (a *Account) Usage(now ClockReading, policy QuotaPolicy) QuotaResult {
	a.minute.expire(now)
	limits, today := a.quota(policy), a.today(now)
	a.chargeEarlierGrant(today, policy)
	remaining := max(0, limits.Day-a.days.get(today).charged())
	if a.closedDay(today, policy) {
		remaining = 0
	}
	return quotaResultOf(Window{limits.Day, remaining, endOf(today)}, a.clusterMinute(limits.Minute, now), now.Wall)
}

// Shrink frees the memory of the minute window if the account had no requests in the last minute.
func (a *Account) Shrink(now ClockReading) { a.minute.shrink(now) }
