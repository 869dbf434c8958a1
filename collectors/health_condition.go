package collectors

import (
	"fmt"
	"time"

	"github.com/tasard/tasard/engine"
)

// failingDivisor: Condition reports failing sources only if they are at least 1/4 of the tried confirmed sources,
// because a few sites fail every week. Sources that are not confirmed (Health.Confirmed) count only for the state
// all_failing: their definitions may not fit their sites at all.
const failingDivisor = 4

// updateConditions updates the counts and the two faults behind Condition. Call it after every try.
func (c *Collector) updateConditions(now time.Time) {
	var all, confirmed sourceCount
	for _, r := range c.runners {
		state, isConfirmed := r.state()
		all.add(state)
		if isConfirmed {
			confirmed.add(state)
		}
	}
	c.counts.Store(&sourceCounts{all, confirmed})
	setFault := func(fault *engine.Fault, active bool) {
		if active {
			fault.Begin(now)
		} else {
			fault.Clear()
		}
	}
	setFault(&c.allFailing, all.tried > 0 && all.failing == all.tried)
	setFault(&c.someFailing, confirmed.failing > 0 && confirmed.failing*failingDivisor >= confirmed.tried)
}

// sourceCount counts the tried sources, and the failing ones among them.
type sourceCount struct{ tried, failing int }

type sourceCounts struct{ all, confirmed sourceCount }

func (n *sourceCount) add(state State) {
	switch state {
	case OK, Degraded, Partial:
		n.tried++
	case Failing, Quarantined:
		n.tried++
		n.failing++
	}
}

func (r *runner) state() (state State, confirmed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.health.State, r.health.Confirmed
}

// Condition reports whether many confirmed sources, or all sources, are failing. It does not block.
func (c *Collector) Condition() engine.Condition {
	now := c.config.Clock()
	counts := c.counts.Load()
	if counts == nil {
		return engine.HealthyCondition("sources")
	}
	if since, active := c.allFailing.Since(now); active {
		return engine.Condition{
			Name: "sources", State: "all_failing", Since: since,
			Detail: fmt.Sprintf("%d of %d sources", counts.all.failing, counts.all.tried) + " gave nothing; rates that were published stay until they expire. Check the network connection of the node.",
		}
	}
	if since, active := c.someFailing.Since(now); active {
		return engine.Condition{
			Name: "sources", State: "some_failing", Since: since,
			Detail: fmt.Sprintf("%d of %d confirmed sources", counts.confirmed.failing, counts.confirmed.tried) + " gave nothing; their rates stay until they expire. 'tasard sources list' shows which, and why.",
		}
	}
	return engine.HealthyCondition("sources")
}
