package account

import (
	"math"
	"time"

	"github.com/tasard/tasard/engine"
)

// DayCounter counts within one Dominican day, the latest that it has seen. A clock that goes back opens no earlier day again: what happens
// then counts for the later one, so that only a new day gives a new count.
type DayCounter struct {
	Day   engine.Date
	Count int
}

func (t DayCounter) on(day engine.Date) int {
	if day > t.Day {
		return 0
	}
	return t.Count
}

func (t *DayCounter) add(day engine.Date) {
	if day > t.Day {
		*t = DayCounter{Day: day}
	}
	t.Count++
}

// counterMinutes is one more than an hour has: what is forgotten is more than an hour old.
const counterMinutes = 61

// HourCounter counts events of the last hour by their minutes in steady time: Counts[i] is the minute that is i modulo 61.
type HourCounter struct {
	Counts [counterMinutes]uint16
	Newest int64
}

func steadyMinute(now time.Duration) int64 { return int64(max(0, now) / time.Minute) }

func (r *HourCounter) slot(minute int64) *uint16 { return &r.Counts[minute%counterMinutes] }

func (r *HourCounter) add(now time.Duration) {
	minute := steadyMinute(now)
	if minute-r.Newest >= counterMinutes {
		*r = HourCounter{Newest: minute}
	}
	for r.Newest < minute {
		r.Newest++
		*r.slot(r.Newest) = 0
	}
	if slot := r.slot(r.Newest); *slot < math.MaxUint16 {
		*slot++
	}
}

// oldest is the first minute that counts.
func (r *HourCounter) oldest(now time.Duration) int64 {
	return max(0, max(r.Newest, steadyMinute(now))-counterMinutes+1)
}

func (r *HourCounter) total(now time.Duration) int {
	sum := 0
	for minute := r.oldest(now); minute <= r.Newest; minute++ {
		sum += int(*r.slot(minute))
	}
	return sum
}

// advance is how long there will be no room below a limit; zero when there is. Without anything counted a limit of zero waits a minute.
func (r *HourCounter) wait(now time.Duration, limit int) time.Duration {
	sum := r.total(now)
	if sum < limit {
		return 0
	}
	for minute := r.oldest(now); minute <= r.Newest; minute++ {
		if sum -= int(*r.slot(minute)); sum < limit {
			return time.Duration(minute+counterMinutes)*time.Minute - now
		}
	}
	return time.Minute
}
