package collectors

import (
	"fmt"
	"time"

	"github.com/tasard/tasard/engine"
)

// Schedule determines the slots (scheduled times for fetching). All nodes must use the same slots.
type Schedule interface {
	Last(now time.Time) time.Time   // newest slot at or before now
	Next(after time.Time) time.Time // first slot after a time
}

// Daily is the schedule of live nodes: 08:00, 12:00 and 17:00 in Santo Domingo, which has no daylight saving time.
func Daily() Schedule { return daily{} }

type daily struct{}

// slotSpanMax is longer than the time between two slots.
const slotSpanMax = 24 * time.Hour

// Last starts from a slot that is certainly in the past, and goes forward to the newest slot.
func (daily) Last(now time.Time) time.Time {
	last := engine.NextRefresh(now.Add(-slotSpanMax))
	for next := engine.NextRefresh(last); !next.After(now); next = engine.NextRefresh(last) {
		last = next
	}
	return last
}

// Next implements Schedule. API clients get the same time as the next refresh.
func (daily) Next(after time.Time) time.Time { return engine.NextRefresh(after) }

// Every is a schedule for demos and tests. Its slots are the results of time.Time.Truncate(step). It panics if step is
// not positive.
func Every(step time.Duration) Schedule {
	if step <= 0 {
		panic(fmt.Sprintf("collectors: Every(%v): a step between slots must be positive", step))
	}
	return every(step)
}

type every time.Duration

// Last implements Schedule.
func (e every) Last(now time.Time) time.Time { return now.UTC().Truncate(time.Duration(e)) }

// Next implements Schedule.
func (e every) Next(after time.Time) time.Time { return e.Last(after).Add(time.Duration(e)) }
