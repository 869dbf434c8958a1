package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/tasard/tasard/actors"
)

const (
	watchInterval = 250 * time.Millisecond
	// reachableWithin is the time after which a node without a heartbeat counts as unreachable. A peer in the raft
	// group of the stream sends four messages a second. After this time without a message the peer counts as
	// unreachable too.
	reachableWithin = 2500 * time.Millisecond
	// While the stream has no leader, the cluster counts as unhealthy, but only after leaderChangeMax. This time is
	// enough for a leadership transfer. It does not hide the loss of the majority, because a follower gives up its
	// leader only a second or more after the newest message of the leader.
	leaderChangeMax = time.Second
)

// This line compiles only if leaderChangeMax is at most reachableWithin.
const _ = uint(reachableWithin - leaderChangeMax)

// watch updates this node's health, sends a heartbeat and checks whether this node must stop (stopOnProblem), every
// watchInterval. On the leader it also applies a new list of members.
func (c *Cluster) watch() {
	r, ticker := c.replica, time.NewTicker(watchInterval)
	defer ticker.Stop()
	for {
		c.updateHealth()
		r.observeFollowers()
		c.sendHeartbeat()
		c.peers.logChanges()
		c.stopOnProblem()
		r.requestReadIndex()
		r.changeMembers()
		r.leaveFullDisk()
		select {
		case <-ticker.C:
		case <-c.ctx.Done():
			return
		}
	}
}

// stopOnProblem makes Follow return an error if this node must stop. There are four reasons: the cluster has removed
// it; most other nodes have accepted another process with its name; its directory is an old copy; or it joined without
// the others and has records that they lack.
func (c *Cluster) stopOnProblem() {
	if c.Journal() == nil {
		return
	}
	err := c.stopCause()
	if accepting, refusing := c.transport.acceptance(); err == nil && refusing > accepting {
		err = c.otherProcessError()
	}
	r, last := c.replica, c.last.Load()
	if err == nil && r.caughtUpSince(c.copiedAt) {
		err = r.checkEnd(last)
	}
	if err != nil {
		r.stop(err)
	}
}

func (c *Cluster) otherProcessError() error {
	return fmt.Errorf("the other nodes have accepted another process as %s, whose machine is in their logs: stop it, or start this node with an "+
		"empty directory and a number of its own", c.config.name())
}

func (c *Cluster) updateHealth() {
	now := c.config.Clock()
	next := actors.ClusterHealth{Since: now, Leader: c.replica.leaderName()}
	next.Majority = next.Leader != "" && c.replica.votersComplete()
	if next.Majority {
		c.leaderSeenAt = now
	}
	next.Majority = next.Majority || maybeTransferring(next.Leader, now.Sub(c.leaderSeenAt))
	before := c.health.Load()
	if before.Majority == next.Majority {
		next.Since = before.Since
	} else {
		c.logger.Debug("cluster health changed", "majority", next.Majority, "leader", next.Leader)
	}
	c.health.Store(&next)
}

// maybeTransferring reports whether the leader may be missing only because leadership is being transferred. elapsed is
// the time since this node most recently saw a majority.
func maybeTransferring(leader string, elapsed time.Duration) bool {
	return leader == "" && elapsed < leaderChangeMax
}

// StepDown transfers leadership to another member, and waits until this node is no longer the leader. Call it before a
// stop, so that other nodes can go on writing.
func (c *Cluster) StepDown(ctx context.Context) error {
	for c.replica.leads.Load() {
		c.replica.transfer()
		if err := sleep(ctx, joinRetryInterval); err != nil {
			return err
		}
	}
	return nil
}

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
		c.start(func() {
			defer cancel()
			for c.holdsLease() && sleep(leading, leasePollInterval) == nil {
			}
		})
		do(leading)
		cancel()
	}
}

// holdsLease reports whether this node leads, a majority has confirmed that within leaseTime, and no earlier leader can
// still hold the lease. It also asks for the next confirmation.
func (c *Cluster) holdsLease() bool {
	r := c.replica
	if !r.leads.Load() || c.ctx.Err() != nil || !r.votersComplete() || !r.caughtUp() {
		return false
	}
	r.requestReadIndex()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.readIndexAskedAt.Sub(r.ledSince) > leaseTime+2*leasePollInterval && c.config.Clock().Sub(r.readIndexAskedAt) < leaseTime
}
