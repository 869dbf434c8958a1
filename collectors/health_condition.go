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

// updateConditions updates the two faults behind Condition. Call it after every try.
func (c *Collector) updateConditions(now time.Time) {
	setFault := func(fault *engine.Fault, active bool) {
		if active {
			fault.Begin(now)
		} else {
			fault.Clear()
		}
	}
	failing, tried := c.countFailing(false)
	setFault(&c.allFailing, tried > 0 && failing == tried)
	failing, tried = c.countFailing(true)
	setFault(&c.someFailing, failing > 0 && failing*failingDivisor >= tried)
}

// countFailing counts the failing sources, and all that were tried.
func (c *Collector) countFailing(onlyConfirmed bool) (failing, tried int) {
	for _, r := range c.runners {
		r.mu.Lock()
		state, isConfirmed := r.health.State, r.health.Confirmed
		r.mu.Unlock()
		if onlyConfirmed && !isConfirmed {
			continue
		}
		switch state {
		case OK, Degraded, Partial:
			tried++
		case Failing, Quarantined:
			tried++
			failing++
		}
	}
	return failing, tried
}

// Condition reports whether many confirmed sources, or all sources, are failing.
func (c *Collector) Condition() engine.Condition {
	now := c.config.Clock()
	if since, active := c.allFailing.Since(now); active {
		failing, tried := c.countFailing(false)
		return engine.Condition{Name: "sources", State: "all_failing", Since: since, Detail: fmt.Sprintf(
			"%d of %d sources gave nothing; rates that were published stay until they expire. Check the network connection of the node.", failing, tried)}
	}
	if since, active := c.someFailing.Since(now); active {
		failing, tried := c.countFailing(true)
		return engine.Condition{Name: "sources", State: "some_failing", Since: since, Detail: fmt.Sprintf(
			"%d of %d confirmed sources gave nothing; their rates stay until they expire. 'tasard sources list' shows which, and why.", failing, tried)}
	}
	return engine.HealthyCondition("sources")
}
