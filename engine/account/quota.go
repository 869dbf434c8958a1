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
	// LeaseDefault is how many requests of the day's quota are taken from the log at once (L1).
	LeaseDefault = 16
	// daysKept bounds the days an account remembers: two are enough for a clock that is right, the others are for its jumps.
	daysKept = 8
)

// Allowance is how much an identity may ask.
type Allowance struct{ Day, Minute int }

// DefaultAllowance is that of everybody (interface §8).
func DefaultAllowance() Allowance { return Allowance{DayLimitDefault, MinuteLimitDefault} }

// Window is one limit as an answer's headers describe it (L3, L4).
type Window struct {
	Limit, Remaining int
	Reset            time.Time // when Remaining rises next: the day's end, or a request's leaving of the minute
}

// Verdict is the outcome of asking for one request.
type Verdict struct {
	Admitted    bool
	Violated    engine.Code // when not admitted: CodeRateLimited, CodeQuotaExceeded, or why the key was refused
	Day, Minute Window
	RetryAfter  time.Duration // when not admitted: until both windows have room (L5)
}

// Tighter is the window that the X-RateLimit headers describe: the violated one, else the one with the smaller remaining, on a tie
// the one that resets later (L3).
func (v *Verdict) Tighter() Window {
	switch {
	case v.Violated == engine.CodeQuotaExceeded:
		return v.Day
	case v.Violated == engine.CodeRateLimited:
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

// verdictOf says whether one more request fits into both windows. When it fits into neither, the one that resets later is named, so
// that the code, the headers and Retry-After speak of the same wait.
func verdictOf(day, minute Window, now time.Time) Verdict {
	v := Verdict{Admitted: true, Day: day, Minute: minute}
	if minute.Remaining == 0 {
		v.Admitted, v.Violated, v.RetryAfter = false, engine.CodeRateLimited, minute.Reset.Sub(now)
	}
	if wait := max(0, day.Reset.Sub(now)); day.Remaining == 0 && wait >= v.RetryAfter {
		v.Admitted, v.Violated, v.RetryAfter = false, engine.CodeQuotaExceeded, wait
	}
	return v
}

// charge takes one request that fits off both windows.
func (v *Verdict) charge() {
	v.Day.Remaining--
	v.Minute.Remaining--
}

// Moment is the present on both clocks. Wall tells the day. Steady is how long nodes have run on this log: it only grows, whatever
// happens to the wall clock, and goes on after a restart where the log ended, so that it is never ahead of real time.
type Moment struct {
	Wall   time.Time
	Steady time.Duration
	// Day is the Dominican day that counts: another than that of Wall while a step of the wall clock is not believed yet, or after one
	// that went back. Zero is that of Wall.
	Day engine.Date
}

// today is the day that counts.
func (m Moment) today() engine.Date {
	if m.Day != 0 {
		return m.Day
	}
	return engine.DateOf(m.Wall)
}

// universal is the instant without zone and monotonic reading, so that equal instants are equal values, also after a replay.
func universal(t time.Time) time.Time { return t.Round(0).UTC() }

// minute is the exact sliding window: when the requests of the last 60 seconds were admitted, oldest first. It counts steady time,
// so that a step of the wall clock neither opens nor closes it. What has left the window stays in front of it until it is as much
// as what is in it, so that a request costs the same whatever the limit is.
type minute struct {
	admitted []time.Duration
	gone     int // so many of them have left
}

// inside are those in the window.
func (m *minute) inside() []time.Duration { return m.admitted[m.gone:] }

// add makes room before the memory would grow: there is at least as much of it in use as was let go of.
func (m *minute) add(now Moment) {
	if len(m.admitted) == cap(m.admitted) && 2*m.gone >= len(m.admitted) {
		m.admitted, m.gone = m.admitted[:copy(m.admitted, m.inside())], 0
	}
	m.admitted = append(m.admitted, now.Steady)
}

func (m *minute) expire(now Moment) {
	for m.gone < len(m.admitted) && now.Steady-m.admitted[m.gone] >= MinuteSpan {
		m.gone++
	}
	if m.gone == len(m.admitted) {
		m.admitted, m.gone = m.admitted[:0], 0
	}
}

// window resets when Remaining rises next; with more in it than the limit, which may have been lowered, that is not the first leaving.
func (m *minute) window(limit int, now Moment) Window {
	inside := m.inside()
	w := Window{Limit: limit, Remaining: max(0, limit-len(inside)), Reset: now.Wall.Add(MinuteSpan)}
	if n := len(inside); n > 0 {
		leaves := inside[min(max(0, n-limit), n-1)]
		w.Reset = now.Wall.Add(MinuteSpan - (now.Steady - leaves))
	}
	return w
}

// refund takes out the admission of a moment, and none other: another one's leaves later or sooner. Steady time only grows, so they
// are in order; the newest are refunded most.
func (m *minute) refund(at Moment) {
	if i, found := slices.BinarySearch(m.inside(), at.Steady); found {
		m.admitted = slices.Delete(m.admitted, m.gone+i, m.gone+i+1)
	}
}

// idle reports that nothing is counted at a moment, and lets go of the memory.
func (m *minute) idle(now Moment) bool {
	m.expire(now)
	if len(m.inside()) > 0 {
		return false
	}
	*m = minute{}
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

// days are the days that an account has leased from, in order. A day that was dropped may never be counted again. Only leases that
// are in the log make and drop days, so that a replay remembers the same ones.
type days struct {
	counts []dayCount
	floor  engine.Date // days up to here are closed; no date is
}

func (d *days) closed(day engine.Date) bool { return day <= d.floor }

// newest is the latest day that was ever counted; no date before the first.
func (d *days) newest() engine.Date {
	if n := len(d.counts); n > 0 {
		return d.counts[n-1].day
	}
	return d.floor
}

// find is the count of a day, nil when there is none.
func (d *days) find(day engine.Date) *dayCount {
	for i := len(d.counts) - 1; i >= 0; i-- {
		if d.counts[i].day == day {
			return &d.counts[i]
		}
	}
	return nil
}

// peek is the count of a day without a way to change it.
func (d *days) peek(day engine.Date) dayCount {
	if c := d.find(day); c != nil {
		return *c
	}
	return dayCount{day: day}
}

// open is the count of a day, made when it is new; nil for a closed day. The oldest day makes room, be it the new one itself.
func (d *days) open(day engine.Date) *dayCount {
	if d.closed(day) {
		return nil
	}
	if c := d.find(day); c != nil {
		return c
	}
	at, _ := slices.BinarySearchFunc(d.counts, day, func(c dayCount, day engine.Date) int { return int(c.day - day) })
	d.counts = slices.Insert(d.counts, at, dayCount{day: day})
	if len(d.counts) > daysKept {
		d.floor = d.counts[0].day
		d.counts = slices.Delete(d.counts, 0, 1)
	}
	return d.find(day)
}
