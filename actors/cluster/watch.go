//go:build !nocluster

package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tasard/tasard/actors"
)

const (
	watchInterval = 250 * time.Millisecond
	// reachableWithin is the age of a heartbeat up to which its node counts as reachable. Leaders and followers of
	// the raft group exchange messages once a second.
	reachableWithin = 2500 * time.Millisecond
	// leaderChangeMax is how long the stream may have no leader before changes are rejected; an orderly hand-over
	// takes less. It hides no lost majority: followers elect a new leader only after reachableWithin without the old
	// one.
	leaderChangeMax = time.Second
	trimTicks       = 8 // watch intervals between trims
)

// watch updates this node's health, sends heartbeats, and trims the stream if this node leads.
func (c *Cluster) watch() {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	for looks := 0; ; looks++ {
		c.updateHealth()
		c.sendHeartbeat()
		c.stopOnConflict()
		if looks%trimTicks == 0 {
			c.trim()
		}
		select {
		case <-ticker.C:
		case <-c.ctx.Done():
			return
		}
	}
}

// stopOnConflict ends Follow when another node has this one's number.
func (c *Cluster) stopOnConflict() {
	j := c.Journal()
	if j == nil {
		return
	}
	if err := c.peers.numberConflict(&c.config); err != nil {
		select {
		case j.stop <- err:
		default: // one error is enough
		}
	}
}

// updateHealth recomputes what Health returns.
func (c *Cluster) updateHealth() {
	now := c.config.Clock()
	next := actors.ClusterHealth{Since: now}
	if g, ok := c.raftGroup(); ok {
		next.Majority, next.Leader = hasMajority(&g, c.config.Name)
	} else if leader, ok := c.peers.leader(now); ok {
		next.Majority, next.Leader = leader.Majority, leader.Name
	}
	if next.Majority {
		c.leaderSeenAt = now
	}
	next.Majority = next.Majority || leaderChanging(next.Leader, now.Sub(c.leaderSeenAt))
	if j := c.Journal(); j != nil && j.stalled(now) {
		next.Majority = false
	}
	before := c.health.Load()
	if before.Majority == next.Majority {
		next.Since = before.Since
	} else {
		c.logger.Info("cluster health changed", "majority", next.Majority, "leader", next.Leader)
	}
	c.health.Store(&next)
}

// leaderChanging reports whether a missing leader may just be handing over.
func leaderChanging(leader string, ago time.Duration) bool {
	return leader == "" && ago < leaderChangeMax
}

// raftGroup returns the raft group of the stream as this node's server sees it; false for a guest.
func (c *Cluster) raftGroup() (server.RaftzGroup, bool) {
	name := c.raftGroupName()
	if name == "" {
		return server.RaftzGroup{}, false
	}
	groups := c.server.nats.Raftz(&server.RaftzOptions{AccountFilter: accountName, GroupFilter: name})
	if groups == nil {
		return server.RaftzGroup{}, false
	}
	g, ok := (*groups)[accountName][name]
	return g, ok
}

// raftGroupName asks only this node's server.
func (c *Cluster) raftGroupName() string {
	if !c.config.selfIsMember() {
		return ""
	}
	info, err := c.server.nats.Jsz(&server.JSzOptions{Account: accountName, Streams: true, RaftGroups: true})
	if err != nil {
		return ""
	}
	for _, account := range info.AccountDetails {
		for i := range account.Streams {
			if account.Streams[i].Name == streamName {
				return account.Streams[i].RaftGroup
			}
		}
	}
	return ""
}

// hasMajority reports whether a majority is reachable: for a leader, enough peers; for a follower, its leader.
func hasMajority(g *server.RaftzGroup, self string) (ok bool, leader string) {
	if g.State == server.Leader.String() {
		seen := 1
		for _, p := range g.Peers {
			if seenRecently(p) {
				seen++
			}
		}
		return seen >= g.QuorumNeeded, self
	}
	p, known := g.Peers[g.Leader]
	if !known {
		return false, ""
	}
	return seenRecently(p), p.Name
}

func seenRecently(p server.RaftzGroupPeer) bool {
	ago, err := time.ParseDuration(p.LastSeen)
	return err == nil && ago < reachableWithin
}

// isLeader reports whether this node's server leads the stream.
func (c *Cluster) isLeader() bool {
	return c.config.selfIsMember() && c.server.nats.JetStreamIsStreamLeader(accountName, streamName)
}

// trim deletes records that every node has in a snapshot, if this node leads.
func (c *Cluster) trim() {
	if !c.isLeader() || !c.Health().Majority {
		return
	}
	ctx, cancel := context.WithTimeout(c.ctx, requestTimeout)
	defer cancel()
	s, err := c.server.js.Stream(ctx, streamName)
	if err != nil {
		return // retried at the next trim
	}
	state := s.CachedInfo().State
	first := c.peers.firstNeeded(&c.config, state.Bytes > c.config.streamBytesMax)
	if first <= max(c.trimmedBefore, state.FirstSeq) {
		return
	}
	err = s.Purge(ctx, jetstream.WithPurgeSequence(first))
	if err != nil && !errors.Is(err, context.Canceled) {
		c.logger.Warn("stream not trimmed", "below", first, "cause", err.Error())
		return
	}
	c.trimmedBefore = first
	c.logger.Debug("stream trimmed", "below", first)
}

// StepDown has another member lead, so that stopping this node does not interrupt writes. It does nothing if this
// node does not lead.
func (c *Cluster) StepDown(ctx context.Context) error {
	for c.isLeader() {
		if err := c.server.nats.JetStreamStepdownStream(accountName, streamName); err != nil {
			c.logger.Debug("leadership not handed over yet", "cause", err.Error())
		}
		if err := sleep(ctx, joinRetryInterval); err != nil {
			return err
		}
	}
	return nil
}
