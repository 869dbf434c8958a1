package cluster

import (
	"context"
	"time"
)

const (
	leasePollInterval = 100 * time.Millisecond
	// leaseTime is how long a leader may believe that it still leads after a majority has confirmed it. A new leader
	// holds no lease for this time, and two polls more, in which its predecessor notices that its lease has ended.
	leaseTime = 800 * time.Millisecond
)

// Lead calls do each time that this node becomes the leader, until ctx ends. The context of do ends when another node
// may lead; do must then return. At most one node holds the lease at a time, because a majority that has elected
// another leader no longer confirms this one. But do may run on for a moment, so correctness must not depend on this.
func (c *Cluster) Lead(ctx context.Context, do func(context.Context)) {
	for sleep(ctx, leasePollInterval) == nil {
		if !c.holdsLease() {
			continue
		}
		leading, cancel := context.WithCancel(ctx)
		started := c.tasks.start(func() {
			defer cancel()
			for c.holdsLease() && sleep(leading, leasePollInterval) == nil {
			}
		})
		if started {
			do(leading)
		}
		cancel()
	}
}

// holdsLease reports whether this node leads, a majority has confirmed that within leaseTime, and no earlier leader can
// still hold the lease. It also asks for the next confirmation.
func (c *Cluster) holdsLease() bool {
	r := c.replica.Load()
	if r == nil || !r.leads.Load() || c.ctx.Err() != nil || !r.votersComplete() || !r.caughtUp() {
		return false
	}
	r.requestReadIndex()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.readIndexAskedAt.Sub(r.ledSince) > leaseTime+2*leasePollInterval && c.config.Clock().Sub(r.readIndexAskedAt) < leaseTime
}
