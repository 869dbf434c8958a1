// Package cluster makes several nodes one service: their log is one stream, replicated on the members by an embedded
// NATS server with JetStream. Open joins the cluster; its Journal implements actors.Shared.
//
//	actors ──Append──► Journal ──publish──► leader of the stream ──► replicas
//	   ▲                  │                        │
//	   └──deliver── local log (wal) ◄──Follow── tail, fetch
//
// # Members and guests
//
// Three or five members, the same list in every node's configuration, store the stream; the list never changes. A
// node that is not in the list is a guest: it can write and has a local log, but does not store the stream and has no
// vote. To replace a lost machine, start a node with an empty directory and the same name and node ID.
//
// # The stream
//
// Message n of the stream is record n of every local log. Its body is a frame:
//
//	 0       4   5        8          16         20       24         40         40+n     44+n
//	+--------+---+--------+----------+----------+--------+----------+----------+--------+
//	| "tsCL" | 1 | 0 0 0  | sequence | previous | length | proposal | n bytes  | sum    |   little-endian, CRC-32C
//	+--------+---+--------+----------+----------+--------+----------+----------+--------+
//
// previous is the checksum of the previous record. proposal identifies the message to the node that proposed it. sum
// is the checksum of all bytes before it. With them a node detects a damaged or wrong message before it applies it. A
// message is published for one sequence (expected last sequence), so it is stored at most once even if it is sent
// repeatedly. The server's reply is only a hint: Follow reads which record is at the sequence. It appends the record
// to the local log before delivering it, so acknowledged changes survive the loss of the stream. A node whose log is
// longer than the stream stops.
//
//	DIR/                     the local log (package wal); snapshots
//	DIR/cluster.json         the stream and the node to which the log belongs
//	DIR/cluster.seal         the key with which login codes are hashed
//	DIR/stream/, stream/LOCK the embedded server's files; flock, one process at a time
//	DIR/incoming.part/       a backup being received from another node
//	DIR/incoming/, install/  a complete backup that replaces the log in DIR; the backup while its files are moved
//
// # Bootstrap, trimming, replacement
//
// The stream is created once, when all members are reachable and none belongs to a stream. If one member has a log,
// the stream continues that log; two logs are an error. Records that all nodes have in a snapshot are trimmed from
// the stream. A stream that is too large is trimmed even if unreachable nodes need the records. A node that needs
// trimmed records copies another node's log (wal.Log.Backup). Replace or upgrade one member at a time, and only while
// Status shows all members as Current.
//
// # Known faults of JetStream (Jepsen, NATS 2.12.1, December 2025)
//
//	7564, 7567  acknowledged before synced      SyncAlways; a synced local copy before every acknowledgement; checksums
//	                                            of two histories differ (TestFaultsCluster_*, Test*/Damage)
//	7549        damaged files served            previous checksum (Test*/Damage); units limit the memory
//	                                            the server may use over them (TestFaultsCluster_DiskDamage)
//	7556        damaged snapshots delete data   every local log has them (TestTrimmed/LostStream)
//	7545        member changes lose records     members never change (TestConfig_Refused); a lost or repeated answer is
//	                                            only a hint (TestRunning/LostAnswers, ControlTrustsAnswers)
//
// Not promised: an isolated node reports a majority for up to three seconds, two nodes may hold a lease at the same
// time if their clocks differ by more than leaseMargin, and data that two disks lose at the same time may be lost.
package cluster
