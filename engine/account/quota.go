package account

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/tasard/tasard/engine"
)

// Defaults and limits of quotas.
const (
	DayLimitDefault    = 1000
	MinuteLimitDefault = 60
	// MinuteSpan is the length of the minute window.
	MinuteSpan = time.Minute
	// LeaseSizeDefault is the default number of requests of a lease (a reserved part of a daily quota).
	LeaseSizeDefault = 16
)

// Quota is the maximum number of requests of a caller on a day and in any minute.
type Quota struct{ Day, Minute int }

// DefaultQuota returns the quota in the API specification.
func DefaultQuota() Quota { return Quota{DayLimitDefault, MinuteLimitDefault} }

// Window is one limit and its current use, as in response headers.
type Window struct {
	Limit     int       `json:"limit"`
	Remaining int       `json:"remaining"`
	Reset     time.Time `json:"resetAt"` // time at which Remaining increases next
}

// QuotaResult tells whether a request fits into both quota windows: the day and the minute.
type QuotaResult struct {
	Admitted    bool
	DenyCode    engine.Code // if denied: CodeRateLimited, CodeQuotaExceeded, or the reason why the key is not valid
	Day, Minute Window
	RetryAfter  time.Duration // if denied: the time until both windows have room
}

// TighterWindow returns the window for the X-RateLimit headers: the one that denied the request. For an admitted
// request it is the one with fewer requests remaining or, if equal, with the later reset.
func (r *QuotaResult) TighterWindow() Window {
	switch {
	case r.DenyCode == engine.CodeQuotaExceeded:
		return r.Day
	case r.DenyCode == engine.CodeRateLimited || r.Minute.Remaining < r.Day.Remaining:
		return r.Minute
	case r.Day.Remaining < r.Minute.Remaining || r.Day.Reset.After(r.Minute.Reset):
		return r.Day
	}
	return r.Minute
}

// quotaResultOf checks whether one more request fits into both windows. If it fits into neither, DenyCode is for the
// window that resets later, to agree with the headers and with RetryAfter.
func quotaResultOf(day, minute Window, now time.Time) QuotaResult {
	r := QuotaResult{Admitted: true, Day: day, Minute: minute}
	if minute.Remaining == 0 {
		r.Admitted, r.DenyCode, r.RetryAfter = false, engine.CodeRateLimited, minute.Reset.Sub(now)
	}
	if wait := max(0, day.Reset.Sub(now)); day.Remaining == 0 && wait >= r.RetryAfter {
		r.Admitted, r.DenyCode, r.RetryAfter = false, engine.CodeQuotaExceeded, wait
	}
	return r
}

func (r *QuotaResult) charge() {
	r.Day.Remaining--
	r.Minute.Remaining--
}

// ClockReading is a reading of two clocks. Wall is the wall clock time, which determines the day. Monotonic is the
// total running time of nodes on this log, from a monotonic clock. After a restart it continues from its newest value
// in the log. Setting the wall clock has no effect on Monotonic.
type ClockReading struct {
	Wall      time.Time
	Monotonic time.Duration
	// Day is the day to charge, or zero for the day of Wall. The two days differ after the wall clock was set back.
	Day engine.Date
}

// dayOf returns the day to which requests, login codes and login attempts at a time count: the day in Santo Domingo, on
// every node. No other function decides this.
func dayOf(t time.Time) engine.Date { return engine.DateOf(t) }

// endOf returns the time at which a day ends and its counts begin again.
func endOf(day engine.Date) time.Time { return (day + 1).Start() }

func (c ClockReading) today() engine.Date {
	if c.Day != 0 {
		return c.Day
	}
	return dayOf(c.Wall)
}

// minuteWindow is an exact sliding window: the monotonic times of the requests admitted in the last 60 seconds, oldest
// first. Expired times stay at the front until they are half of the list, so the cost of a request does not depend on
// the limit.
type minuteWindow struct {
	admitted []time.Duration
	expired  int // number of expired times

	// Requests that may have been admitted before a restart. They count as admitted at one time, before the others.
	restored   int
	restoredAt time.Duration
}

func (m *minuteWindow) active() []time.Duration { return m.admitted[m.expired:] }

// count is the number of requests in the window.
func (m *minuteWindow) count() int { return m.restored + len(m.active()) }

// at returns the time of request i of the window; request 0 is the oldest.
func (m *minuteWindow) at(i int) time.Duration {
	if i < m.restored {
		return m.restoredAt
	}
	return m.active()[i-m.restored]
}

// leftBy returns how many requests will have left the window by a later time.
func (m *minuteWindow) leftBy(later time.Duration) int {
	active := m.active()
	sum, found := slices.BinarySearch(active, later-MinuteSpan)
	for found && sum < len(active) && active[sum] == later-MinuteSpan {
		sum++
	}
	if later-m.restoredAt >= MinuteSpan {
		sum += m.restored
	}
	return sum
}

func (m *minuteWindow) add(now ClockReading) {
	if len(m.admitted) == cap(m.admitted) && 2*m.expired >= len(m.admitted) {
		m.admitted, m.expired = m.admitted[:copy(m.admitted, m.active())], 0
	}
	m.admitted = append(m.admitted, now.Monotonic)
}

func (m *minuteWindow) expire(now ClockReading) {
	for len(m.active()) > 0 && now.Monotonic-m.active()[0] >= MinuteSpan {
		m.expired++
	}
	if len(m.active()) == 0 {
		m.admitted, m.expired = m.admitted[:0], 0
	}
	if now.Monotonic-m.restoredAt >= MinuteSpan {
		m.restored = 0
	}
}

// window returns the limit and the current use of the window. If the limit was lowered below the number of requests,
// Reset is later than the next expiry.
func (m *minuteWindow) window(limit int, now ClockReading) Window {
	count, admittedAt := m.count(), now.Monotonic
	if count > 0 {
		admittedAt = m.at(min(max(0, count-limit), count-1)) // of the request whose expiry increases Remaining
	}
	return Window{Limit: limit, Remaining: max(0, limit-count), Reset: now.Wall.Add(MinuteSpan - (now.Monotonic - admittedAt))}
}

// refund removes the request admitted at exactly the given time. Another request would not do, because it expires at
// another time.
func (m *minuteWindow) refund(admittedAt ClockReading) {
	if i, found := slices.BinarySearch(m.active(), admittedAt.Monotonic); found {
		m.admitted = slices.Delete(m.admitted, m.expired+i, m.expired+i+1)
	}
}

// dayCount counts the requests of one day.
type dayCount struct {
	day      engine.Date
	granted  int // part of leased: a grant of the day that no event of the account includes yet
	leased   int // requests that leases have taken from the quota
	spent    int // part of leased
	refunded int // part of spent; not charged, and can be spent again after the next lease (Account.Refund)
}

func (c *dayCount) spendAll() { c.spent, c.refunded = c.leased, 0 }

func (c dayCount) unspent() int { return c.leased - c.spent }

func (c dayCount) charged() int { return c.spent - c.refunded }

// dayCounts counts the newest day with leased requests, or the zero Date. An account never charges an earlier day
// (Account.today), so no other count is needed.
type dayCounts struct {
	dayCount
	logged DayState // the newest day with an event, as in the log; before day if no event includes the grant of day yet
}

// find returns the count of a day, or nil.
func (d *dayCounts) find(day engine.Date) *dayCount {
	if d.day == day && day != 0 {
		return &d.dayCount
	}
	return nil
}

// get returns a copy of the count of a day.
func (d *dayCounts) get(day engine.Date) dayCount {
	if c := d.find(day); c != nil {
		return *c
	}
	return dayCount{day: day}
}

// log adds the leased requests of an event, or subtracts those that it returns. It returns the change of the day's
// count, in which the event replaces the grant of the day.
func (d *dayCounts) log(day engine.Date, requests int) (change int) {
	if day > d.logged.Day {
		d.logged = DayState{Day: day}
	}
	if day == d.logged.Day {
		d.logged.Leased = max(0, d.logged.Leased+requests)
	}
	if day > d.day {
		d.dayCount = dayCount{day: day}
	}
	if day != d.day {
		return requests
	}
	change = d.logged.Leased - d.leased
	d.leased, d.granted = d.logged.Leased, 0
	return change
}

// QuotaPolicy is a node's settings for quotas. A lease is a reserved part of an account's daily quota.
type QuotaPolicy struct {
	DefaultQuota Quota      // quota of accounts without their own quota
	LeaseSize    int        // number of requests of a lease; 1 = every request is written to the log before its response
	Grants       *DayGrants // grants of days for the account; nil = none
}

func (a *Account) quota(policy QuotaPolicy) Quota {
	if a.special == nil {
		return policy.DefaultQuota
	}
	own := a.special.quota
	return Quota{cmp.Or(own.Day, policy.DefaultQuota.Day), cmp.Or(own.Minute, policy.DefaultQuota.Minute)}
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
		a.tokens().tokens--
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
		return max(day, a.days.day)
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
func (a *Account) Shrink(now ClockReading) {
	if a.minute.expire(now); a.minute.count() == 0 {
		a.minute = minuteWindow{}
	}
}

// DayCounter counts the events of the latest day seen. If the clock is set back, later events still count for that day.
type DayCounter struct {
	Day   engine.Date
	Count int32
}

func (c DayCounter) on(day engine.Date) int {
	if day > c.Day {
		return 0
	}
	return int(c.Count)
}

func (c *DayCounter) add(day engine.Date) {
	if day > c.Day {
		*c = DayCounter{Day: day}
	}
	c.Count++
}

// counterMinutes is one more than an hour's minutes, because the current minute is incomplete.
const counterMinutes = 61

// HourCounter counts the events of the last hour by minutes of monotonic time (ClockReading.Monotonic). Minute i is in
// Counts[i % 61].
type HourCounter struct {
	Counts [counterMinutes]uint16
	Newest int64 // newest counted minute
}

func monotonicMinute(now time.Duration) int64 { return int64(max(0, now) / time.Minute) }

func (c *HourCounter) slot(minute int64) *uint16 { return &c.Counts[minute%counterMinutes] }

func (c *HourCounter) add(now time.Duration) {
	minute := monotonicMinute(now)
	if minute-c.Newest >= counterMinutes {
		*c = HourCounter{Newest: minute}
	}
	for c.Newest < minute {
		c.Newest++
		*c.slot(c.Newest) = 0
	}
	if slot := c.slot(c.Newest); *slot < math.MaxUint16 {
		*slot++
	}
}

// wait returns the time until the total falls below limit, or zero if it is below limit now.
func (c *HourCounter) wait(now time.Duration, limit int) time.Duration {
	oldest, total := max(0, max(c.Newest, monotonicMinute(now))-counterMinutes+1), 0
	for minute := c.Newest; minute >= oldest; minute-- {
		if total += int(*c.slot(minute)); total >= limit { // until this minute has left
			return time.Duration(minute+counterMinutes)*time.Minute - now
		}
	}
	return 0
}
