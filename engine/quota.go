package engine

import (
	"slices"
	"time"
)

// Limits of an identity (interface §8).
const (
	DayLimitDefault    = 1000
	MinuteLimitDefault = 60
	// MinuteSpan is the length of the sliding window (L2).
	MinuteSpan = time.Minute
	// LeaseDefault is how many requests of the day's quota are taken from the log at once (L1).
	LeaseDefault = 16
	// daysKept bounds the days an account remembers; a clock that jumps may add one, time goes by them otherwise.
	daysKept = 4
)

// Allowance is how much an identity may ask.
type Allowance struct{ Day, Minute int }

// DefaultAllowance is that of everybody (interface §8).
func DefaultAllowance() Allowance { return Allowance{DayLimitDefault, MinuteLimitDefault} }

// Window is one limit as an answer's headers describe it (L3, L4).
type Window struct {
	Limit, Remaining int
	Reset            time.Time // when Remaining rises next: the day's end, or the oldest request's leaving of the minute
}

// Verdict is the outcome of asking for one request.
type Verdict struct {
	Admitted    bool
	Violated    Code // when not admitted: CodeRateLimited, CodeQuotaExceeded, or why the key was refused
	Day, Minute Window
	RetryAfter  time.Duration // when not admitted: until both windows have room (L5)
}

// Tighter is the window that the X-RateLimit headers describe: the violated one, else the one with the smaller remaining, on a tie
// the one that resets later (L3).
func (v *Verdict) Tighter() Window {
	switch {
	case v.Violated == CodeQuotaExceeded:
		return v.Day
	case v.Violated == CodeRateLimited:
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

// Moment is the present on both clocks. Wall tells the day. Steady is how long nodes have run on this log: it only grows, whatever
// happens to the wall clock, and goes on after a restart where the log ended.
type Moment struct {
	Wall   time.Time
	Steady time.Duration
}

// minute is the exact sliding window: when the requests of the last 60 seconds were admitted, oldest first. It counts steady time,
// so that a step of the wall clock neither opens nor closes it.
type minute struct{ admitted []time.Duration }

func (m *minute) expire(now Moment) {
	gone := 0
	for gone < len(m.admitted) && now.Steady-m.admitted[gone] >= MinuteSpan {
		gone++
	}
	if gone > 0 {
		m.admitted = m.admitted[:copy(m.admitted, m.admitted[gone:])]
	}
}

func (m *minute) window(limit int, now Moment) Window {
	w := Window{Limit: limit, Remaining: max(0, limit-len(m.admitted)), Reset: now.Wall.Add(MinuteSpan)}
	if len(m.admitted) > 0 {
		w.Reset = now.Wall.Add(MinuteSpan - (now.Steady - m.admitted[0]))
	}
	return w
}

func (m *minute) refund() {
	if n := len(m.admitted); n > 0 {
		m.admitted = m.admitted[:n-1]
	}
}

// idle reports that nothing is counted at a moment.
func (m *minute) idle(now Moment) bool {
	m.expire(now)
	return len(m.admitted) == 0
}

// dayCount is how much of one Dominican day is used up. Leased is in the log, Spent only in memory and never above it: what a
// crash forgets was counted as spent before.
type dayCount struct {
	day           Date
	leased, spent int
}

// days are the days that an identity remembers, in order. A day that was dropped may never be counted again.
type days struct {
	counts []dayCount
	floor  Date // days up to here are closed
}

// at is the count of a day, made when it is new; nil for a closed day.
func (d *days) at(day Date) *dayCount {
	if day <= d.floor {
		return nil
	}
	at, found := slices.BinarySearchFunc(d.counts, day, func(c dayCount, day Date) int { return int(c.day) - int(day) })
	if found {
		return &d.counts[at]
	}
	d.counts = slices.Insert(d.counts, at, dayCount{day: day})
	if len(d.counts) <= daysKept {
		return &d.counts[at]
	}
	d.floor = d.counts[0].day
	d.counts = slices.Delete(d.counts, 0, 1)
	if at == 0 {
		return nil
	}
	return &d.counts[at-1]
}

// peek is the count of a day without making one.
func (d *days) peek(day Date) dayCount {
	for _, c := range d.counts {
		if c.day == day {
			return c
		}
	}
	return dayCount{day: day}
}
