package cluster

import (
	"slices"
	"strings"
	"time"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/engine"
)

// Status is the cluster as one node sees it.
type Status struct {
	Cluster  string
	Stream   string // its number
	Standing actors.Standing
	Nodes    []NodeStatus // by name: all members, and every guest that was heard
}

// NodeStatus is one node as another one sees it. Beside its name, a member that was never heard has only an address.
type NodeStatus struct {
	Name      string
	Node      engine.NodeID
	Address   string
	Version   string
	Self      bool
	Member    bool      // keeps a copy of the stream
	Reachable bool      // heard lately
	Seen      time.Time // when it was last heard
	Leader    bool      // of the stream: writes go through it
	Meta      bool      // leads the group that keeps what streams there are
	Current   bool      // its part of the stream is whole and up to date; a guest has none
	Last      uint64    // newest record of its copy
	Lag       uint64    // records that another node has and it has not
	Snapshot  uint64    // sequence of its newest snapshot
}

// Status tells from memory how all nodes are.
func (c *Cluster) Status() Status {
	now := c.config.Clock()
	nodes := map[string]NodeStatus{}
	for _, m := range c.config.Members {
		nodes[m.Name] = NodeStatus{Name: m.Name, Address: m.Address, Member: true, Self: m.Name == c.config.Name}
	}
	newest := uint64(0)
	for _, h := range c.reports.all() {
		there := now.Sub(h.at) < seenWithin
		nodes[h.Name] = NodeStatus{
			Name: h.Name, Node: h.Node, Address: h.Address, Version: h.Version, Self: h.Name == c.config.Name,
			Member: nodes[h.Name].Member, Reachable: there, Seen: h.at.Round(0).UTC(),
			Leader: h.Leader && there, Meta: h.Meta && there, Current: h.Current && there, Last: h.Last, Snapshot: h.Kept,
		}
		newest = max(newest, h.Last)
	}
	s := Status{Cluster: c.config.Cluster, Stream: c.stream(), Standing: c.Standing()}
	for _, n := range nodes {
		n.Lag = newest - n.Last
		s.Nodes = append(s.Nodes, n)
	}
	slices.SortFunc(s.Nodes, func(a, b NodeStatus) int { return strings.Compare(a.Name, b.Name) })
	return s
}
