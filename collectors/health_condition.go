package collectors

import (
	"fmt"
	"time"

	"github.com/tasard/tasard/engine"
)

// failingDivisor says that Condition reports failing sources only if they are at least 1/4 of the sources that were
// tried, because a few sites fail every week.
const failingDivisor = 4

// updateConditions updates the numbers and the two faults from which Condition takes its result. It must be called
// after every try.
func (c *Collector) updateConditions(now time.Time) {
	tried, failing := 0, 0
	for _, r := range c.runners {
		switch r.state() {
		case OK, Partial:
			tried++
		case Failing, CircuitOpen, Quarantined:
			tried++
			failing++
		}
	}
	c.tried.Store(int64(tried))
	c.failing.Store(int64(failing))
	setFault := func(fault *engine.Fault, active bool) {
		if active {
			fault.Begin(now)
		} else {
			fault.Clear()
		}
	}
	setFault(&c.allFailing, tried > 0 && failing == tried)
	setFault(&c.someFailing, failing > 0 && failing*failingDivisor >= tried)
}

func (r *runner) state() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.health.State
}

// Condition reports whether many or all sources are failing. It does not block.
func (c *Collector) Condition() engine.Condition {
	now := c.config.Clock()
	counts := fmt.Sprintf("%d of %d sources", c.failing.Load(), c.tried.Load())
	if since, active := c.allFailing.Since(now); active {
		return engine.Condition{
			Name: "sources", State: "all_failing", Since: since,
			Detail: counts + " gave nothing; rates stay until they expire. Check the network connection of the node.",
		}
	}
	if since, active := c.someFailing.Since(now); active {
		return engine.Condition{
			Name: "sources", State: "some_failing", Since: since,
			Detail: counts + " gave nothing; their rates stay until they expire. 'tasard sources list' shows which, and why.",
		}
	}
	return engine.HealthyCondition("sources")
}
