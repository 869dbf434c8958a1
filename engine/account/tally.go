package account

import (
	"math"
	"time"

	"github.com/tasard/tasard/engine"
)

// tally counts within one Dominican day, the latest that it has seen. A clock that goes back opens no earlier day again: what happens
// then counts for the later one, so that only a new day gives a new count.
type tally struct {
	day   engine.Date
	count int
}

func (t tally) on(day engine.Date) int {
	if day > t.day {
		return 0
	}
	return t.count
}

func (t *tally) add(day engine.Date) {
	if day > t.day {
		*t = tally{day: day}
	}
	t.count++
}

// rollingMinutes is one more than an hour has: what is forgotten is more than an hour old.
const rollingMinutes = 61

// rolling counts events of the last hour by their minutes in steady time. Slot i is the minute that is i modulo 61.
type rolling struct {
	minutes [rollingMinutes]uint16
	newest  int64
}

func steadyMinute(now time.Duration) int64 { return int64(max(0, now) / time.Minute) }

func (r *rolling) slot(minute int64) *uint16 { return &r.minutes[minute%rollingMinutes] }

func (r *rolling) add(now time.Duration) {
	minute := steadyMinute(now)
	if minute-r.newest >= rollingMinutes {
		*r = rolling{newest: minute}
	}
	for r.newest < minute {
		r.newest++
		*r.slot(r.newest) = 0
	}
	if slot := r.slot(r.newest); *slot < math.MaxUint16 {
		*slot++
	}
}

// oldest is the first minute that counts.
func (r *rolling) oldest(now time.Duration) int64 {
	return max(0, max(r.newest, steadyMinute(now))-rollingMinutes+1)
}

func (r *rolling) total(now time.Duration) int {
	sum := 0
	for minute := r.oldest(now); minute <= r.newest; minute++ {
		sum += int(*r.slot(minute))
	}
	return sum
}

// wait is how long there will be no room below a limit; zero when there is. Without anything counted a limit of zero waits a minute.
func (r *rolling) wait(now time.Duration, limit int) time.Duration {
	sum := r.total(now)
	if sum < limit {
		return 0
	}
	for minute := r.oldest(now); minute <= r.newest; minute++ {
		if sum -= int(*r.slot(minute)); sum < limit {
			return time.Duration(minute+rollingMinutes)*time.Minute - now
		}
	}
	return time.Minute
}
