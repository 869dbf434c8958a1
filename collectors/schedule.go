package collectors

import (
	"fmt"
	"time"

	"github.com/tasard/tasard/engine"
)

// Schedule says when sources are asked: at slots, instants of the wall clock that are the same for whoever computes them. A
// slot is the name under which the engine hears a source once, whatever crashes in between.
type Schedule interface {
	Last(now time.Time) time.Time   // the newest slot that is not after now
	Next(after time.Time) time.Time // the first slot after an instant
}

// Daily is the schedule of the service: the refresh slots of the engine (T2), 08:00, 12:00 and 17:00 in Santo Domingo. There is
// no summer time, so they are four, five and fifteen hours apart, every day.
func Daily() Schedule { return daily{} }

type daily struct{}

// daySpan is more than lies between two slots.
const daySpan = 24 * time.Hour

// Last goes from a slot that is surely past to the newest one.
func (daily) Last(now time.Time) time.Time {
	last := engine.NextRefresh(now.Add(-daySpan))
	for next := engine.NextRefresh(last); !next.After(now); next = engine.NextRefresh(last) {
		last = next
	}
	return last
}

// Next is the engine's own answer, which the API's clients get as well (Q13).
func (daily) Next(after time.Time) time.Time { return engine.NextRefresh(after) }

// Every is a schedule with a slot at each multiple of step since the year 1, for demos and tests. It panics when step is not
// positive: there is no such schedule.
func Every(step time.Duration) Schedule {
	if step <= 0 {
		panic(fmt.Sprintf("collectors: Every(%v): a step between slots must be positive", step))
	}
	return every(step)
}

type every time.Duration

// Last rounds down.
func (e every) Last(now time.Time) time.Time { return now.UTC().Truncate(time.Duration(e)) }

// Next is one step later.
func (e every) Next(after time.Time) time.Time { return e.Last(after).Add(time.Duration(e)) }
