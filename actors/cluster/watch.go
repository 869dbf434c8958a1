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
	// reachableWithin is how long ago a node was heard that counts as there. Leaders and followers speak once a second.
	reachableWithin = 2500 * time.Millisecond
	// leaderChangeMax is how long there may be no leader before changes are refused: one that stops in order hands over in less. It hides no loss: who
	// looks for another leader has not heard the old one for longer than reachableWithin.
	leaderChangeMax = time.Second
	trimTicks       = 8 // looks
)

// watch looks how this node stands, tells the others, and trims the stream if that is this node's turn.
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

// stopOnConflict ends this node's part when another one has its number.
func (c *Cluster) stopOnConflict() {
	j := c.openJournal()
	if j == nil {
		return
	}
	if err := c.peers.numberConflict(&c.config); err != nil {
		select {
		case j.stop <- err:
		default: // told already
		}
	}
}

// expectRecord brings the standing up to date.
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
	if j := c.openJournal(); j != nil && j.stalled(now) {
		next.Majority = false
	}
	before := c.health.Load()
	if before.Majority == next.Majority {
		next.Since = before.Since
	} else {
		c.logger.Info("standing in the cluster", "majority", next.Majority, "leader", next.Leader)
	}
	c.health.Store(&next)
}

// leaderChanging reports that a leader which was there so long ago may just be making room for another one.
func leaderChanging(leader string, ago time.Duration) bool {
	return leader == "" && ago < leaderChangeMax
}

// raftGroup is the raft group of the stream as this node's server sees it. A guest has none.
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

// raftGroupName asks this node's server, not the network.
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

// hasMajority reads a group: a leader must have heard from enough others, a follower from its leader.
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

// trim lets go of what every node has in a snapshot, if this node leads.
func (c *Cluster) trim() {
	if !c.isLeader() || !c.Health().Majority {
		return
	}
	ctx, cancel := context.WithTimeout(c.ctx, requestTimeout)
	defer cancel()
	s, err := c.server.js.Stream(ctx, streamName)
	if err != nil {
		return // the next look asks again
	}
	state := s.CachedInfo().State
	first := c.peers.firstNeeded(&c.config, state.Bytes > c.config.StreamBytesMax)
	if first <= max(c.trimmedBefore, state.FirstSeq) {
		return
	}
	err = s.Purge(ctx, jetstream.WithPurgeSequence(first))
	if err != nil && !errors.Is(err, context.Canceled) {
		c.logger.Warn("the stream was not trimmed", "below", first, "cause", err.Error())
		return
	}
	c.trimmedBefore = first
	c.logger.Debug("stream trimmed", "below", first)
}

// StepDown has another member lead, so that this one can stop without a pause of writes. It is no error if this one does not lead.
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
