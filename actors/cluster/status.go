package cluster

import (
	"time"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/engine"
)

// Status is the cluster as one node sees it.
type Status struct {
	Cluster string
	Stream  string // its number
	Health  actors.ClusterHealth
	Nodes   []NodeStatus // by name: all members, and every guest that was heard
}

// NodeStatus is one node as another one sees it. Beside its name, a member that was never heard has only an address.
type NodeStatus struct {
	Name       string
	Node       engine.NodeID
	Address    string
	Version    string
	Self       bool
	Member     bool      // keeps a copy of the stream
	Reachable  bool      // heard lately
	LastSeen   time.Time // when it was last heard
	Leader     bool      // of the stream: writes go through it
	MetaLeader bool      // leads the group that keeps what streams there are
	Current    bool      // its part of the stream is whole and up to date; a guest has none
	Last       uint64    // newest record of its copy
	Lag        uint64    // records that another node has and it has not
	Snapshot   uint64    // sequence of its newest snapshot
}
