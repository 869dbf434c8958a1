package account

import (
	"slices"
	"time"

	"github.com/tasard/tasard/engine"
)

// Limits of an identity (interface §8).
const (
	DayLimitDefault    = 1000
	MinuteLimitDefault = 60
	// MinuteSpan is the length of the sliding window (L2).
	MinuteSpan = time.Minute
	// LeaseSizeDefault is how many requests of the day's quota are taken from the log at once (L1).
	LeaseSizeDefault = 16
	// daysKept bounds the days an account remembers: two are enough for a clock that is right, the others are for its jumps.
	daysKept = 8
)

// Quota is how much an identity may ask.
type Quota struct{ Day, Minute int }

// DefaultQuota is that of everybody (interface §8).
func DefaultQuota() Quota { return Quota{DayLimitDefault, MinuteLimitDefault} }

// Window is one limit as an answer's headers describe it (L3, L4).
type Window struct {
	Limit, Remaining int
	Reset            time.Time // when Remaining rises next: the day's end, or a request's leaving of the minute
}

// QuotaResult is the outcome of asking for one request.
type QuotaResult struct {
	Admitted    bool
	DenyCode    engine.Code // when not admitted: CodeRateLimited, CodeQuotaExceeded, or why the key was refused
	Day, Minute Window
	RetryAfter  time.Duration // when not admitted: until both windows have room (L5)
}

// TighterWindow is the window that the X-RateLimit headers describe: the violated one, else the one with the smaller remaining, on a tie
// the one that resets later (L3).
func (v *QuotaResult) TighterWindow() Window {
	switch {
	case v.DenyCode == engine.CodeQuotaExceeded:
		return v.Day
	case v.DenyCode == engine.CodeRateLimited:
		return v.Minute
	case v.Day.Remaining != v.Minute.Remaining:
		if v.Day.Remaining < v.Minute.Remaining {
			return v.Day
		}
		return v.Minute
	case v.Day.Reset.After(v.Minute.Reset):
		return v.Day
	}
	return v.Minute
}

// quotaResultOf says whether one more request fits into both windows. When it fits into neither, the one that resets later is named, so
// that the code, the headers and Retry-After speak of the same wait.
func quotaResultOf(day, minute Window, now time.Time) QuotaResult {
	v := QuotaResult{Admitted: true, Day: day, Minute: minute}
	if minute.Remaining == 0 {
		v.Admitted, v.DenyCode, v.RetryAfter = false, engine.CodeRateLimited, minute.Reset.Sub(now)
	}
	if wait := max(0, day.Reset.Sub(now)); day.Remaining == 0 && wait >= v.RetryAfter {
		v.Admitted, v.DenyCode, v.RetryAfter = false, engine.CodeQuotaExceeded, wait
	}
	return v
}

// charge takes one request that fits off both windows.
func (v *QuotaResult) charge() {
	v.Day.Remaining--
	v.Minute.Remaining--
}

// ClockReading is the present on both clocks. Wall tells the day. Steady is how long nodes have run on this log: it only grows, whatever
// happens to the wall clock, and goes on after a restart where the log ended, so that it is never ahead of real time.
type ClockReading struct {
	Wall   time.Time
	Steady time.Duration
	// Day is the Dominican day that counts: another than that of Wall while a step of the wall clock is not believed yet, or after one
	// that went back. Zero is that of Wall.
	Day engine.Date
}

// today is the day that counts.
func (m ClockReading) today() engine.Date {
	if m.Day != 0 {
		return m.Day
	}
	return engine.DateOf(m.Wall)
}

// plainUTC is the instant without zone and monotonic reading, so that equal instants are equal values, also after a replay.
func plainUTC(t time.Time) time.Time { return t.Round(0).UTC() }

// minuteWindow is the exact sliding window: when the requests of the last 60 seconds were admitted, oldest first. It counts steady time,
// so that a step of the wall clock neither opens nor closes it. What has left the window stays in front of it until it is as much
// as what is in it, so that a request costs the same whatever the limit is.
type minuteWindow struct {
	admitted []time.Duration
	expired  int // so many of them have left
}

// active are those in the window.
func (m *minuteWindow) active() []time.Duration { return m.admitted[m.expired:] }

// add makes room before the memory would grow: there is at least as much of it in use as was let go of.
func (m *minuteWindow) add(now ClockReading) {
	if len(m.admitted) == cap(m.admitted) && 2*m.expired >= len(m.admitted) {
		m.admitted, m.expired = m.admitted[:copy(m.admitted, m.active())], 0
	}
	m.admitted = append(m.admitted, now.Steady)
}

func (m *minuteWindow) expire(now ClockReading) {
	for m.expired < len(m.admitted) && now.Steady-m.admitted[m.expired] >= MinuteSpan {
		m.expired++
	}
	if m.expired == len(m.admitted) {
		m.admitted, m.expired = m.admitted[:0], 0
	}
}

// window resets when Remaining rises next; with more in it than the limit, which may have been lowered, that is not the first leaving.
func (m *minuteWindow) window(limit int, now ClockReading) Window {
	inside := m.active()
	w := Window{Limit: limit, Remaining: max(0, limit-len(inside)), Reset: now.Wall.Add(MinuteSpan)}
	if n := len(inside); n > 0 {
		leaves := inside[min(max(0, n-limit), n-1)]
		w.Reset = now.Wall.Add(MinuteSpan - (now.Steady - leaves))
	}
	return w
}

// refund takes out the admission of a moment, and none other: another one's leaves later or sooner. Steady time only grows, so they
// are in order; the newest are refunded most.
func (m *minuteWindow) refund(at ClockReading) {
	if i, found := slices.BinarySearch(m.active(), at.Steady); found {
		m.admitted = slices.Delete(m.admitted, m.expired+i, m.expired+i+1)
	}
}

// idle reports that nothing is counted at a moment, and lets go of the memory.
func (m *minuteWindow) idle(now ClockReading) bool {
	m.expire(now)
	if len(m.active()) > 0 {
		return false
	}
	*m = minuteWindow{}
	return true
}

// dayCount is how much of one Dominican day is used up. Leased is in the log; the others are in memory only and never above it: what
// a crash forgets was counted as spent before.
type dayCount struct {
	day      engine.Date
	leased   int
	spent    int // of what is leased
	refunded int // of what is spent: costs nothing any more and is spent again only after the next lease, see Account.Refund
}

// unspent is what may be spent at once.
func (c dayCount) unspent() int { return c.leased - c.spent }

// charged is what counts against the day's limit.
func (c dayCount) charged() int { return c.spent - c.refunded }

// dayCounts are the days that an account has leased from, in order. A day that was dropped may never be counted again. Only leases that
// are in the log make and drop days, so that a replay remembers the same ones.
type dayCounts struct {
	counts      []dayCount
	closedUntil engine.Date // days up to here are closed; no date is
}

func (d *dayCounts) closed(day engine.Date) bool { return day <= d.closedUntil }

// newest is the latest day that was ever counted; no date before the first.
func (d *dayCounts) newest() engine.Date {
	if n := len(d.counts); n > 0 {
		return d.counts[n-1].day
	}
	return d.closedUntil
}

// find is the count of a day, nil when there is none.
func (d *dayCounts) find(day engine.Date) *dayCount {
	for i := len(d.counts) - 1; i >= 0; i-- {
		if d.counts[i].day == day {
			return &d.counts[i]
		}
	}
	return nil
}

// get is the count of a day without a way to change it.
func (d *dayCounts) get(day engine.Date) dayCount {
	if c := d.find(day); c != nil {
		return *c
	}
	return dayCount{day: day}
}

// addSession is the count of a day, made when it is new; nil for a closed day. The oldest day makes room, be it the new one itself.
func (d *dayCounts) getOrCreate(day engine.Date) *dayCount {
	if d.closed(day) {
		return nil
	}
	if c := d.find(day); c != nil {
		return c
	}
	at, _ := slices.BinarySearchFunc(d.counts, day, func(c dayCount, day engine.Date) int { return int(c.day - day) })
	d.counts = slices.Insert(d.counts, at, dayCount{day: day})
	if len(d.counts) > daysKept {
		d.closedUntil = d.counts[0].day
		d.counts = slices.Delete(d.counts, 0, 1)
	}
	return d.find(day)
}
