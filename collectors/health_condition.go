package collectors

import (
	"fmt"
	"time"

	"github.com/tasard/tasard/engine"
)

// failingDivisor is how small a part of the sources must fail until that is more than the usual: sites are down, or change, every week.
const failingDivisor = 4

// updateConditions notes how many sources fail; each source does it when a try of it has ended.
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
	note := func(t *engine.Fault, on bool) {
		if on {
			t.Begin(now)
		} else {
			t.Clear()
		}
	}
	note(&c.allFailing, tried > 0 && failing == tried)
	note(&c.someFailing, failing > 0 && failing*failingDivisor >= tried)
}

// state is how the source is, in one word.
func (r *runner) state() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.health.State
}

// Condition tells whether the sources give what they should. It waits for nothing.
func (c *Collector) Condition() engine.Condition {
	now := c.config.Clock()
	counts := fmt.Sprintf("%d of %d sources that were asked", c.failing.Load(), c.tried.Load())
	if since, on := c.allFailing.Since(now); on {
		return engine.Condition{
			Name: "sources", State: "all_failing", Since: since,
			Detail: counts + " gave nothing; rates stay until they expire. Look at the way of the node to the network.",
		}
	}
	if since, on := c.someFailing.Since(now); on {
		return engine.Condition{
			Name: "sources", State: "some_failing", Since: since,
			Detail: counts + " gave nothing; their rates stay until they expire. tasard sources list says which, and why.",
		}
	}
	return engine.HealthyCondition("sources")
}
