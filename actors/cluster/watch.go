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
	watchEvery = 250 * time.Millisecond
	// seenWithin is how long ago a node was heard that counts as there. Leaders and followers speak once a second.
	seenWithin = 2500 * time.Millisecond
	// handOver is how long there may be no leader before changes are refused: one that stops in order hands over in less. It hides no loss: who
	// looks for another leader has not heard the old one for longer than seenWithin.
	handOver  = time.Second
	trimEvery = 8 // looks
)

// watch looks how this node stands, tells the others, and trims the stream if that is this node's turn.
func (c *Cluster) watch() {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for looks := 0; ; looks++ {
		c.look()
		c.announce()
		c.giveWay()
		if looks%trimEvery == 0 {
			c.trim()
		}
		select {
		case <-ticker.C:
		case <-c.life.Done():
			return
		}
	}
}

// giveWay ends this node's part when another one has its number.
func (c *Cluster) giveWay() {
	j := c.opened()
	if j == nil {
		return
	}
	if err := c.reports.clash(&c.config); err != nil {
		select {
		case j.stop <- err:
		default: // told already
		}
	}
}

// look brings the standing up to date.
func (c *Cluster) look() {
	now := c.config.Clock()
	next := actors.Standing{Since: now}
	if g, ok := c.group(); ok {
		next.Majority, next.Leader = majority(&g, c.config.Name)
	} else if leader, ok := c.reports.leader(now); ok {
		next.Majority, next.Leader = leader.Majority, leader.Name
	}
	if next.Majority {
		c.led = now
	}
	next.Majority = next.Majority || handingOver(next.Leader, now.Sub(c.led))
	if j := c.opened(); j != nil && j.stuck(now) {
		next.Majority = false
	}
	before := c.standing.Load()
	if before.Majority == next.Majority {
		next.Since = before.Since
	} else {
		c.logger.Info("standing in the cluster", "majority", next.Majority, "leader", next.Leader)
	}
	c.standing.Store(&next)
}

// handingOver reports that a leader which was there so long ago may just be making room for another one.
func handingOver(leader string, ago time.Duration) bool { return leader == "" && ago < handOver }

// group is the raft group of the stream as this node's server sees it. A guest has none.
func (c *Cluster) group() (server.RaftzGroup, bool) {
	name := c.groupName()
	if name == "" {
		return server.RaftzGroup{}, false
	}
	groups := c.node.server.Raftz(&server.RaftzOptions{AccountFilter: accountName, GroupFilter: name})
	if groups == nil {
		return server.RaftzGroup{}, false
	}
	g, ok := (*groups)[accountName][name]
	return g, ok
}

// groupName asks this node's server, not the network.
func (c *Cluster) groupName() string {
	if !c.config.member() {
		return ""
	}
	info, err := c.node.server.Jsz(&server.JSzOptions{Account: accountName, Streams: true, RaftGroups: true})
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

// majority reads a group: a leader must have heard from enough others, a follower from its leader.
func majority(g *server.RaftzGroup, self string) (ok bool, leader string) {
	if g.State == server.Leader.String() {
		seen := 1
		for _, p := range g.Peers {
			if fresh(p) {
				seen++
			}
		}
		return seen >= g.QuorumNeeded, self
	}
	p, known := g.Peers[g.Leader]
	if !known {
		return false, ""
	}
	return fresh(p), p.Name
}

func fresh(p server.RaftzGroupPeer) bool {
	ago, err := time.ParseDuration(p.LastSeen)
	return err == nil && ago < seenWithin
}

// leads reports whether this node's server leads the stream.
func (c *Cluster) leads() bool {
	return c.config.member() && c.node.server.JetStreamIsStreamLeader(accountName, streamName)
}

// trim lets go of what every node has in a snapshot, if this node leads.
func (c *Cluster) trim() {
	if !c.leads() || !c.Standing().Majority {
		return
	}
	ctx, cancel := context.WithTimeout(c.life, askWait)
	defer cancel()
	s, err := c.node.js.Stream(ctx, streamName)
	if err != nil {
		return // the next look asks again
	}
	state := s.CachedInfo().State
	first := c.reports.needed(&c.config, state.Bytes > c.config.StreamBytesMax)
	if first <= max(c.trimmed, state.FirstSeq) {
		return
	}
	err = s.Purge(ctx, jetstream.WithPurgeSequence(first))
	if err != nil && !errors.Is(err, context.Canceled) {
		c.logger.Warn("the stream was not trimmed", "below", first, "cause", err.Error())
		return
	}
	c.trimmed = first
	c.logger.Debug("stream trimmed", "below", first)
}

// Leave has another member lead, so that this one can stop without a pause of writes. It is no error if this one does not lead.
func (c *Cluster) Leave(ctx context.Context) error {
	for c.leads() {
		if err := c.node.server.JetStreamStepdownStream(accountName, streamName); err != nil {
			c.logger.Debug("leadership not handed over yet", "cause", err.Error())
		}
		if err := pause(ctx, joinLook); err != nil {
			return err
		}
	}
	return nil
}
