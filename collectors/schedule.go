package collectors

import (
	"fmt"
	"time"

	"github.com/tasard/tasard/engine"
)

// Schedule has the slots at which sources are fetched: times of the wall clock, the same on every node. The engine
// accepts a source once for each slot, even after a crash.
type Schedule interface {
	Last(now time.Time) time.Time   // the newest slot that is not after now
	Next(after time.Time) time.Time // the first slot after an instant
}

// Daily is the live schedule, that of the engine: 08:00, 12:00 and 17:00 in Santo Domingo, which has no daylight
// saving time.
func Daily() Schedule { return daily{} }

type daily struct{}

// daySpan is longer than the time between two slots.
const daySpan = 24 * time.Hour

// Last searches from a slot that is certainly in the past.
func (daily) Last(now time.Time) time.Time {
	last := engine.NextRefresh(now.Add(-daySpan))
	for next := engine.NextRefresh(last); !next.After(now); next = engine.NextRefresh(last) {
		last = next
	}
	return last
}

// Next returns what the API tells its clients as the next refresh.
func (daily) Next(after time.Time) time.Time { return engine.NextRefresh(after) }

// Every is a schedule with a slot at each multiple of step since year 1, for demos and tests. It panics if step is
// not positive.
func Every(step time.Duration) Schedule {
	if step <= 0 {
		panic(fmt.Sprintf("collectors: Every(%v): a step between slots must be positive", step))
	}
	return every(step)
}

type every time.Duration

// Last rounds down to a multiple of the step.
func (e every) Last(now time.Time) time.Time { return now.UTC().Truncate(time.Duration(e)) }

// Next returns one step after Last.
func (e every) Next(after time.Time) time.Time { return e.Last(after).Add(time.Duration(e)) }
