package collectors

import (
	"fmt"
	"time"

	"github.com/tasard/tasard/engine"
)

// failingPart is how small a part of the sources must fail until that is more than the usual: sites are down, or change, every week.
const failingPart = 4

// judge notes how many sources fail; each source does it when a try of it has ended.
func (c *Collector) judge(now time.Time) {
	tried, failing := 0, 0
	for _, r := range c.runners {
		switch r.state() {
		case OK, Partial:
			tried++
		case Failing, Resting, Held:
			tried++
			failing++
		}
	}
	c.tried.Store(int64(tried))
	c.failing.Store(int64(failing))
	note := func(t *engine.Trouble, on bool) {
		if on {
			t.Begin(now)
		} else {
			t.End()
		}
	}
	note(&c.all, tried > 0 && failing == tried)
	note(&c.some, failing > 0 && failing*failingPart >= tried)
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
	if since, on := c.all.Since(now); on {
		return engine.Condition{
			Name: "sources", State: "all_failing", Since: since,
			Detail: counts + " gave nothing; rates stay until they expire. Look at the way of the node to the network.",
		}
	}
	if since, on := c.some.Since(now); on {
		return engine.Condition{
			Name: "sources", State: "some_failing", Since: since,
			Detail: counts + " gave nothing; their rates stay until they expire. tasard sources list says which, and why.",
		}
	}
	return engine.Well("sources")
}
