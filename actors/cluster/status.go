package cluster

import (
	"time"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/engine"
)

// Status is the state of the cluster as one node sees it.
type Status struct {
	Cluster string
	Stream  string // ID of the stream
	Health  actors.ClusterHealth
	Nodes   []NodeStatus // by name: all members, and every guest that was seen
}

// NodeStatus is the state of one node as another sees it. For a member that was never seen, only Name and Address are
// set.
type NodeStatus struct {
	Name       string
	Node       engine.NodeID
	Address    string
	Version    string
	Self       bool
	Member     bool      // stores the stream
	Reachable  bool      // sent a heartbeat recently
	LastSeen   time.Time // time of its last heartbeat
	Leader     bool      // of the stream: all writes go through it
	MetaLeader bool      // of the JetStream metadata group
	Current    bool      // its part of the stream is complete and up to date; false for guests
	Last       uint64    // newest record of its log
	Lag        uint64    // records that another node has and it lacks
	Snapshot   uint64    // sequence of its newest snapshot
}
