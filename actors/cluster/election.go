//go:build !nocluster

package cluster

import (
	"sync"
	"time"
	_ "unsafe" // for go:linkname

	"github.com/nats-io/nats-server/v2/server"
)

// The server has no options for the times of its elections. They are variables of its package: a new version of the
// server without them does not link.

//go:linkname minElectionTimeout github.com/nats-io/nats-server/v2/server.minElectionTimeout
var minElectionTimeout time.Duration

//go:linkname maxElectionTimeout github.com/nats-io/nats-server/v2/server.maxElectionTimeout
var maxElectionTimeout time.Duration

//go:linkname minCampaignTimeout github.com/nats-io/nats-server/v2/server.minCampaignTimeout
var minCampaignTimeout time.Duration

//go:linkname maxCampaignTimeout github.com/nats-io/nats-server/v2/server.maxCampaignTimeout
var maxCampaignTimeout time.Duration

//go:linkname hbInterval github.com/nats-io/nats-server/v2/server.hbInterval
var hbInterval time.Duration

//go:linkname lookupRaftNode github.com/nats-io/nats-server/v2/server.(*Server).lookupRaftNode
func lookupRaftNode(s *server.Server, group string) server.RaftNode

// shortenElections makes the servers of this process elect another leader after 1 to 2.2 s without a message of the
// leader, instead of after 4 to 9 s. The server's times suit clusters with thousands of streams. Until there is a
// leader, accounts without a quota lease are rejected. A shorter time would replace leaders whose disk is only slow. A
// campaign (see campaign) begins after 5 to 10 ms instead of after 100 to 800 ms.
var shortenElections = sync.OnceFunc(func() {
	hbInterval = 250 * time.Millisecond
	minElectionTimeout, maxElectionTimeout = time.Second, 2200*time.Millisecond
	minCampaignTimeout, maxCampaignTimeout = 5*time.Millisecond, 10*time.Millisecond
})

const (
	routePollInterval = 20 * time.Millisecond
	// campaignStagger is the time that a node leaves to each node before it in the list of members. If two nodes
	// campaign at the same time, neither may win, and the next election begins a second later.
	campaignStagger = 100 * time.Millisecond
)

// watchRoutes starts an election as soon as the connection to a leader breaks, which it does at once if the leader's
// process dies. Otherwise an election begins only when the leader has been silent for minElectionTimeout.
func (c *Cluster) watchRoutes() {
	ticker := time.NewTicker(routePollInterval)
	defer ticker.Stop()
	for before := 0; ; {
		select {
		case <-ticker.C:
		case <-c.ctx.Done():
			return
		}
		routes := c.server.nats.NumRoutes()
		if routes < before {
			c.tasks.start(c.campaign)
		}
		before = routes
	}
}

// campaign makes this node a candidate in each raft group to whose leader it has no connection. The members take turns,
// in the order of their list.
func (c *Cluster) campaign() {
	connected := c.connected()
	lost := c.leaderless(connected)
	for _, m := range c.config.Members {
		if len(lost) == 0 || m.Name == c.config.Name {
			break
		}
		if connected[m.Name] && sleep(c.ctx, campaignStagger) != nil {
			return
		}
	}
	for group, term := range lost {
		if node := lookupRaftNode(c.server.nats, group); node != nil && node.Term() == term && !node.Leader() {
			c.logger.Info("lost the connection to the leader, standing for election", "group", group)
			_ = node.Campaign() // its only error means that this node is the leader by now
		}
	}
}

// connected returns the names of the nodes to which this node has a connection.
func (c *Cluster) connected() map[string]bool {
	names := map[string]bool{}
	routes, err := c.server.nats.Routez(nil)
	if err != nil {
		return names
	}
	for _, r := range routes.Routes {
		names[r.RemoteName] = true
	}
	return names
}

// leaderless returns the raft groups whose leader is not connected, with their terms.
func (c *Cluster) leaderless(connected map[string]bool) map[string]uint64 {
	terms := map[string]uint64{}
	for _, account := range []string{accountName, ""} { // "" is the account of the server's own groups
		groups := c.server.nats.Raftz(&server.RaftzOptions{AccountFilter: account})
		if groups == nil {
			continue
		}
		for _, byName := range *groups {
			for name, g := range byName {
				if leader, known := g.Peers[g.Leader]; known && !connected[leader.Name] {
					terms[name] = g.Term
				}
			}
		}
	}
	return terms
}
