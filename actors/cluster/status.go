package cluster

import (
	"time"

	"github.com/tasard/tasard/actors"
)

// Status is the state of the cluster as one node sees it.
type Status struct {
	Cluster string
	Stream  string // ID of the log that the nodes share
	Health  actors.ClusterHealth
	Nodes   []NodeStatus // all members, and other nodes (guests) that have sent a heartbeat; sorted by name
}

// NodeStatus is the state of one node, from its newest heartbeat. For a member without a heartbeat only Name, Address,
// Member and Self are set.
type NodeStatus struct {
	Name         string
	Address      string
	Version      string
	Self         bool      // the node that returned the Status
	Member       bool      // the node stores the stream
	Reachable    bool      // the newest heartbeat is recent
	LastSeen     time.Time // when the newest heartbeat arrived
	Leader       bool      // leader of the stream, which handles all writes
	OtherMembers bool      // the list of members in the node's configuration has other names or addresses than this node's
	Current      bool      // the node has all committed records; false for guests
	Last         uint64    // sequence of the newest record in the node's own log
	Lag          uint64    // number of records that the node's log lacks, compared with the longest log of a node
	Snapshot     uint64    // sequence of the newest snapshot
}
