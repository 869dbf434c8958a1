// Package cluster lets several nodes share one log, the stream. Raft (go.etcd.io/raft) replicates the entries of the
// stream. Open listens for other nodes, and Cluster.Join joins the cluster. Package node makes an actors.Shared of
// Cluster.
//
//	actors ──Append──► Journal of the leader ──propose──► entries on a majority
//	   ▲                  │                                 │
//	   └──deliver── local log (wal) ◄──Follow── committed entries
//
// # Terms
//
//	stream      the log that the nodes share: the records of raft's committed entries
//	local log   this node's own copy of the records of the stream
//	member      one of the three or five nodes that vote; every node lists them in its configuration
//	learner     a new member until it has raft's entries; it has no vote
//	proposal    a record that the leader wants to append to the stream
//	read index  an index in raft's log; a node that has applied the entries up to it is up to date
//	checkpoint  the state that replaces old entries in the store of raft
//	claim       says which process connects under the name of a node
//
// # Members
//
// If all reachable nodes have a new list of members, the leader changes the voters, one at a time (members.go). Nodes
// know each other by keys derived from a secret (config.go). To replace a lost machine, start a node with its
// name, ID and an empty directory. A node's ID in raft is random and belongs to the directory, so a new directory never
// votes as an earlier one; a removed ID never comes back. Of two processes with one name the second stops.
//
// # The stream
//
// Record n of every local log has sequence n. The data of an entry of raft is a frame, little-endian:
//
//	 0          8          12
//	+----------+----------+------------+
//	| sequence | previous | the record |   previous: CRC-32C of the previous record
//	+----------+----------+------------+
//
// By previous a node detects, before it applies the record, that its local log has another history. 0 is unknown:
// the log of the cluster, or that of the node that proposed the record, began with a backup.
//
// Only the leader proposes records, each once, and only in a term in which it has applied everything of earlier terms
// (Leadership). Others ask it (Ask). If it ceases to lead meanwhile, the outcome is unknown. A node whose local log is
// longer than the stream stops.
//
//	DIR/                     the local log and the snapshots (package wal)
//	DIR/raft/                entries, votes and state of raft, with the secret key for hashes of login codes (store.go);
//	                         never in a backup
//	DIR/cluster.json         the stream and the node to which the log belongs, and the node's ID in raft
//	DIR/cluster.lock         a lock that allows one process at a time
//	DIR/incoming.backup      a backup of another node, until it has replaced the local log (install.go)
//
// A member creates the stream when all members are reachable and none belongs to a stream. If one member has a log, the
// stream continues that log. Two logs are an error. A node that needs entries older than the leader's checkpoint copies
// another node's state when it starts: a backup, as tasard backup makes it, sent by the running node.
//
// Not promised: an isolated node may report a majority for three seconds; records that two disks lose at the same time
// may be lost. Start with cluster.go, journal.go and replica.go.
package cluster
