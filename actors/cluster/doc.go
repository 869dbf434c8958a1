// Package cluster lets several nodes share one log, a JetStream stream that embedded NATS servers replicate. Each node
// also has a copy, its local log. Open joins the cluster. Cluster.Journal implements actors.Shared.
//
//	actors ──Append──► Journal ──publish──► leader of the stream ──► replicas
//	   ▲                  │                        │
//	   └──deliver── local log (wal) ◄──Follow── tail, fetch
//
// # Members and guests
//
// Three or five nodes, the members, store the stream. When all nodes have another list of members, the leader changes
// the replicas (resize.go). A node outside the list is a guest: it writes and has a log, but no part of the stream and
// no vote. Nodes present certificates, or keys derived from a secret, to each other's gate. To replace a lost machine,
// start a node with its name, ID and an empty directory. Of two processes with one name the second stops.
//
// # The stream
//
// Record n of every local log is message n of the stream. The body of a message is a frame:
//
//	 0       4   5        8          16         20       24         40         40+n     44+n
//	+--------+---+--------+----------+----------+--------+----------+----------+--------+
//	| "tsCL" | 1 | 0 0 0  | sequence | previous | length | proposal | n bytes  | sum    |   little-endian, CRC-32C
//	+--------+---+--------+----------+----------+--------+----------+----------+--------+
//
// sum is the checksum of the bytes before it. previous is the checksum of the previous record. With both checksums a
// node detects a damaged or wrong message before it applies the record. proposal is the ID of the proposal (see below).
//
// A node proposes a record for one sequence. The server stores the message only at this sequence, so a repeated message
// is not stored twice. A reply of the server may be lost or wrong. Therefore Follow reads the stream: the proposal has
// succeeded if the message at the sequence has the ID of the proposal. Follow appends each record to the local log and
// then delivers it, so acknowledged changes survive the loss of the stream. A node whose local log is longer than the
// stream stops.
//
//	DIR/                     the local log and the snapshots (package wal)
//	DIR/cluster.json         the stream and the node to which the log belongs
//	DIR/cluster.seal         the secret key for hashes of login codes
//	DIR/stream/, stream/LOCK the files of the embedded server; a lock that allows one process at a time
//	DIR/incoming.part/       an incomplete copy of another node's log
//	DIR/incoming/, install/  a complete copy; the same while its files are moved to DIR
//
// # Bootstrap, trimming, replacement
//
// A member creates the stream when all members are reachable and none belongs to a stream. If one member has a log, the
// stream continues that log. Two logs are an error. The leader removes (trims) records that are in the newest snapshots
// of all nodes. If the stream is too large, the leader also removes records that an unreachable node needs. A node that
// needs trimmed records copies another node's log. Replace or upgrade one member at a time, and only while Status shows
// all members as Current.
//
// # Known faults of JetStream (issues of nats-server; Jepsen, NATS 2.12.1, December 2025) and what protects us
//
//	7564, 7567  acknowledges before syncing   SyncAlways; local log; checksums (TestFaultsCluster_*, Test*/Damage)
//	7549        serves damaged files          checksums (Test*/Damage); systemd units limit the server's memory
//	                                          (TestFaultsCluster_DiskDamage)
//	7556        damaged snapshots delete data local logs have the records (TestTrimmed/LostStream)
//	7545        member changes lose records   only while all members are reachable (TestResize); local logs; Follow reads
//	                                          which record was stored (TestRunning/LostAnswers, ControlTrustsAnswers)
//
// Not promised: an isolated node may report a majority for three seconds; two nodes may hold a Lease at the same time
// if their clocks differ by more than leaseMargin; records that two disks lose at the same time may be lost.
// Start with cluster.go, journal.go and follow.go.
package cluster
