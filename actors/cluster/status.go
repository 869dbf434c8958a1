package cluster

import (
	"time"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/engine"
)

// Status is the state of the cluster from the view of one node.
type Status struct {
	Cluster string
	Stream  string // ID of the stream
	Health  actors.ClusterHealth
	Nodes   []NodeStatus // all members, and all guests that were seen, sorted by name
}

// NodeStatus is the state of one node from the view of another. A member that was never seen has only Name, Address and
// Member.
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
	Lag        uint64    // number of records that another node has and this node lacks
	Snapshot   uint64    // sequence of its newest snapshot
}
