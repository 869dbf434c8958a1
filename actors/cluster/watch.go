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
	// reachableWithin is the maximum age of the last heartbeat of a reachable node, and of the last message of a
	// reachable peer in the raft group. Raft peers exchange messages once a second.
	reachableWithin = 2500 * time.Millisecond
	// leaderChangeMax is how long the stream may have no leader before changes are rejected. A leadership transfer takes
	// less time. It cannot hide the loss of the majority, because followers elect a new leader only after they have had
	// no message from the old one for reachableWithin, which is longer.
	leaderChangeMax = time.Second
	trimTicks       = 8 // watch intervals between trims
)

// watch runs every watchInterval: it updates this node's health, sends a heartbeat and, on the leader, trims the
// stream.
func (c *Cluster) watch() {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	for tick := 0; ; tick++ {
		c.updateHealth()
		c.sendHeartbeat()
		c.stopOnConflict()
		if tick%trimTicks == 0 {
			c.trim()
		}
		select {
		case <-ticker.C:
		case <-c.ctx.Done():
			return
		}
	}
}

// stopOnConflict ends Follow with an error when this node must stop because another node has its node ID.
func (c *Cluster) stopOnConflict() {
	j := c.Journal()
	if j == nil {
		return
	}
	if err := c.peers.nodeIDConflict(&c.config); err != nil {
		select {
		case j.stop <- err:
		default: // an earlier error is waiting already
		}
	}
}

// updateHealth updates the result of Health.
func (c *Cluster) updateHealth() {
	now := c.config.Clock()
	next := actors.ClusterHealth{Since: now}
	if group, ok := c.raftGroup(); ok {
		next.Majority, next.Leader = hasMajority(&group, c.config.Name)
	} else if leader, ok := c.peers.leader(now); ok {
		next.Majority, next.Leader = leader.Majority, leader.Name
	}
	if next.Majority {
		c.leaderSeenAt = now
	}
	next.Majority = next.Majority || maybeTransferring(next.Leader, now.Sub(c.leaderSeenAt))
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

// maybeTransferring reports whether the stream has had no leader for so short a time that leadership may be in
// transfer.
func maybeTransferring(leader string, elapsed time.Duration) bool {
	return leader == "" && elapsed < leaderChangeMax
}

// raftGroup returns this server's view of the stream's raft group, or false for a guest.
func (c *Cluster) raftGroup() (server.RaftzGroup, bool) {
	name := c.streamRaftGroup()
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

// streamRaftGroup returns the name of the stream's raft group, or "". It asks only this node's server.
func (c *Cluster) streamRaftGroup() string {
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

// hasMajority returns the leader and reports whether a majority is reachable. A leader needs enough reachable peers, a
// follower needs a reachable leader.
func hasMajority(group *server.RaftzGroup, self string) (ok bool, leader string) {
	if group.State == server.Leader.String() {
		reachable := 1
		for _, peer := range group.Peers {
			if peerReachable(peer) {
				reachable++
			}
		}
		return reachable >= group.QuorumNeeded, self
	}
	peer, known := group.Peers[group.Leader]
	if !known {
		return false, ""
	}
	return peerReachable(peer), peer.Name
}

func peerReachable(p server.RaftzGroupPeer) bool {
	elapsed, err := time.ParseDuration(p.LastSeen)
	return err == nil && elapsed < reachableWithin
}

// isLeader reports whether this node is the leader of the stream.
func (c *Cluster) isLeader() bool {
	return c.config.selfIsMember() && c.server.nats.JetStreamIsStreamLeader(accountName, streamName)
}

// trim deletes records from the stream that all nodes have in a snapshot. Only the leader with a majority does so.
func (c *Cluster) trim() {
	if !c.isLeader() || !c.Health().Majority {
		return
	}
	ctx, cancel := context.WithTimeout(c.ctx, requestTimeout)
	defer cancel()
	s, err := c.server.js.Stream(ctx, streamName)
	if err != nil {
		return // the next trim retries
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

// StepDown transfers leadership to another member, so that writes continue while this node stops. It does nothing if
// this node is not the leader.
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
