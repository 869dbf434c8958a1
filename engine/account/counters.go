package account

import (
	"math"
	"time"

	"github.com/tasard/tasard/engine"
)

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

// oldest returns the first minute that total includes.
func (c *HourCounter) oldest(now time.Duration) int64 {
	return max(0, max(c.Newest, monotonicMinute(now))-counterMinutes+1)
}

func (c *HourCounter) total(now time.Duration) int {
	sum := 0
	for minute := c.oldest(now); minute <= c.Newest; minute++ {
		sum += int(*c.slot(minute))
	}
	return sum
}

// wait returns the time until the total falls below limit, or zero if it is below limit now.
func (c *HourCounter) wait(now time.Duration, limit int) time.Duration {
	sum := c.total(now)
	if sum < limit {
		return 0
	}
	for minute := c.oldest(now); minute <= c.Newest; minute++ {
		if sum -= int(*c.slot(minute)); sum < limit {
			return time.Duration(minute+counterMinutes)*time.Minute - now
		}
	}
	return time.Minute // limit is zero
}
