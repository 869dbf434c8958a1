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
	// reachableWithin is the time after which a node without a heartbeat counts as unreachable. A peer in the raft group
	// of the stream sends four messages a second. After this time without a message the peer counts as unreachable too.
	reachableWithin = 2500 * time.Millisecond
	// While the stream has no leader, the cluster counts as unhealthy, but only after leaderChangeMax. This time is enough
	// for a leadership transfer. It does not hide the loss of the majority, because a follower gives up its leader only
	// a second or more after the newest message of the leader.
	leaderChangeMax = time.Second
	trimTicks       = 8 // trim and resize run once in this number of watch intervals
)

// This line compiles only if leaderChangeMax is at most reachableWithin.
const _ = uint(reachableWithin - leaderChangeMax)

// watch updates this node's health, sends a heartbeat and checks whether this node must stop (stopOnProblem), every
// watchInterval. It also removes old records from the stream (trim), and applies a new list of members (resize).
func (c *Cluster) watch() {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	for tick := 0; ; tick++ {
		c.updateHealth()
		c.sendHeartbeat()
		c.peers.logChanges()
		c.stopOnProblem()
		if tick%trimTicks == 0 {
			c.trim()
			c.resize()
		}
		select {
		case <-ticker.C:
		case <-c.ctx.Done():
			return
		}
	}
}

// stopOnProblem makes Follow return an error if this node must stop: because another node has the same node ID, because
// most other nodes have accepted another process with this node's name while they did not reach this process, or
// because of storageError.
func (c *Cluster) stopOnProblem() {
	j := c.Journal()
	if j == nil {
		return
	}
	err := c.peers.nodeIDConflict(&c.config)
	if peers, _, refusing := c.acceptance(); err == nil && 2*refusing > peers {
		err = c.otherProcessError()
	}
	if err == nil {
		err = c.storageError(j)
	}
	if err != nil {
		select {
		case j.stop <- err:
		default: // Follow has not read an earlier error yet
		}
	}
}

// storageError returns an error if the server no longer stores the stream, as after a write to a full disk. Only
// a new process can start this again. While the disk is full, storageError returns nil, so that the node serves reads.
func (c *Cluster) storageError(j *Journal) error {
	if !c.config.selfIsMember() || c.server.nats.JetStreamEnabled() || j.CheckSpace(0) != nil {
		return nil
	}
	return errors.New("the node's server no longer stores the stream, because its disk was full or the other nodes have removed this member: " +
		"start the node again")
}

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
		c.logger.Debug("cluster health changed", "majority", next.Majority, "leader", next.Leader)
	}
	c.health.Store(&next)
}

// maybeTransferring reports whether there is no leader, perhaps only because leadership is being transferred. elapsed
// is the time since this node most recently saw a majority.
func maybeTransferring(leader string, elapsed time.Duration) bool {
	return leader == "" && elapsed < leaderChangeMax
}

// raftGroup returns the state of the stream's raft group as this node's server sees it. It returns false on a guest,
// which is a node that stores no part of the stream.
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

// streamRaftGroup returns the name of the stream's raft group, or "" if this node's server does not have it.
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

// hasMajority reports whether this node, named self, is connected to a majority, and returns the leader. On the leader,
// enough peers must be reachable. On a follower, the leader must be reachable.
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

func (c *Cluster) isLeader() bool {
	return c.config.selfIsMember() && c.server.nats.JetStreamIsStreamLeader(accountName, streamName)
}

// trim deletes from the stream the records that no node needs: those before peerTable.firstNeeded. Only the leader does
// this, and only while it has a majority. Otherwise trim does nothing.
func (c *Cluster) trim() {
	if !c.isLeader() || !c.Health().Majority {
		return
	}
	ctx, cancel := context.WithTimeout(c.ctx, requestTimeout)
	defer cancel()
	s, err := c.server.js.Stream(ctx, streamName)
	if err != nil {
		return // the next call tries again
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

// StepDown transfers leadership to another member, and waits until this node is no longer the leader. Call it before a
// stop, so that other nodes can go on writing.
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
