package account

import (
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
	// daysKept is the number of days with counts in an account. Two are enough, but a jump of the clock can add more.
	daysKept = 8
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

// plainUTC removes the location and the monotonic clock reading, so that equal times are equal values after a replay.
func plainUTC(t time.Time) time.Time { return t.Round(0).UTC() }

// minuteWindow is an exact sliding window: the monotonic times of the requests admitted in the last 60 seconds, oldest
// first. Expired times stay at the front until they are half of the list, so the cost of a request does not depend on
// the limit.
type minuteWindow struct {
	admitted []time.Duration
	oldest   time.Duration // a copy of the first unexpired time: a request then does not wait for the list's memory
	expired  int           // number of expired times

	// Requests that may have been admitted before a restart. They count as admitted at one time, before the others.
	restored   int
	restoredAt time.Duration
}

func (m *minuteWindow) active() []time.Duration { return m.admitted[m.expired:] }

// count is the number of requests in the window.
func (m *minuteWindow) count() int { return m.restored + len(m.active()) }

// at returns the time of request i of the window; request 0 is the oldest.
func (m *minuteWindow) at(i int) time.Duration {
	switch i -= m.restored; {
	case i < 0:
		return m.restoredAt
	case i == 0:
		return m.oldest
	}
	return m.active()[i]
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
	if len(m.active()) == 0 {
		m.oldest = now.Monotonic
	}
	m.admitted = append(m.admitted, now.Monotonic)
}

func (m *minuteWindow) expire(now ClockReading) {
	for len(m.active()) > 0 && now.Monotonic-m.oldest >= MinuteSpan {
		m.expired++
		m.setOldest()
	}
	if len(m.active()) == 0 {
		m.admitted, m.expired = m.admitted[:0], 0
	}
	if now.Monotonic-m.restoredAt >= MinuteSpan {
		m.restored = 0
	}
}

func (m *minuteWindow) setOldest() {
	if active := m.active(); len(active) > 0 {
		m.oldest = active[0]
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
		m.setOldest()
	}
}

// shrink frees the memory of an empty window.
func (m *minuteWindow) shrink(now ClockReading) {
	if m.expire(now); m.count() == 0 {
		*m = minuteWindow{}
	}
}

// dayCount counts the requests of one day. Only the field leased is in the log.
type dayCount struct {
	day      engine.Date
	granted  int32 // part of leased: a grant of the day that no event of the account includes yet
	leased   int   // requests that leases have taken from the quota
	spent    int   // part of leased
	refunded int   // part of spent; not charged, and can be spent again after the next lease (Account.Refund)
}

func (c *dayCount) spendAll() { c.spent, c.refunded = c.leased, 0 }

func (c dayCount) unspent() int { return c.leased - c.spent }

func (c dayCount) charged() int { return c.spent - c.refunded }

// dayCounts contains a dayCount for each day with leased requests. A closed day must never be counted again. Only
// events close days, so that a replay closes the same days.
type dayCounts struct {
	counts      []dayCount  // sorted by day
	closedUntil engine.Date // this day and earlier days are dropped
}

func (d *dayCounts) closed(day engine.Date) bool { return day <= d.closedUntil }

// newest returns the latest day that was ever counted, or the zero Date.
func (d *dayCounts) newest() engine.Date {
	if n := len(d.counts); n > 0 {
		return d.counts[n-1].day
	}
	return d.closedUntil
}

// spendAll makes all leased requests of all days count as spent.
func (d *dayCounts) spendAll() {
	for i := range d.counts {
		d.counts[i].spendAll()
	}
}

// unspent returns the number of unspent requests of all days.
func (d *dayCounts) unspent() (sum int) {
	for _, count := range d.counts {
		sum += count.unspent()
	}
	return sum
}

// addGrant adds a day with the requests of a grant.
func (d *dayCounts) addGrant(day engine.Date, size int) *dayCount {
	count := d.getOrCreate(day)
	count.leased, count.granted = size, int32(size)
	return count
}

// find returns the count of a day, or nil.
func (d *dayCounts) find(day engine.Date) *dayCount {
	for i := len(d.counts) - 1; i >= 0; i-- {
		if d.counts[i].day == day {
			return &d.counts[i]
		}
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

// getOrCreate returns the count of a day, or nil if the day is closed (dropped). If there are then more than daysKept
// days, it drops the oldest day, which may be the requested one.
func (d *dayCounts) getOrCreate(day engine.Date) *dayCount {
	if d.closed(day) {
		return nil
	}
	if c := d.find(day); c != nil {
		return c
	}
	// Counts of earlier days with a grant are no longer needed: an account never charges an earlier day.
	d.counts = slices.DeleteFunc(d.counts, func(c dayCount) bool { return c.granted > 0 && c.day < day })
	i, _ := slices.BinarySearchFunc(d.counts, day, func(c dayCount, day engine.Date) int { return int(c.day - day) })
	d.counts = slices.Insert(d.counts, i, dayCount{day: day})
	if len(d.counts) > daysKept {
		d.closedUntil = d.counts[0].day
		d.counts = slices.Delete(d.counts, 0, 1)
	}
	return d.find(day)
}
