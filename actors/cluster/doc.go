// Package cluster makes several nodes one service: their log is one stream with a copy on each member, kept by an embedded NATS server
// with JetStream. HasBackup joins; the Journal that it gives is an actors.Shared.
//
// # Members and guests
//
// Three or five members, named in every node's configuration, each keep a copy of the stream; the list never changes. A node that is not
// in the list is a guest: it writes and keeps a local log, but has no vote and no part of the stream. A machine that is lost is replaced
// by an empty directory under the same name and number.
//
// # The stream
//
// A message of the stream is a record: the sequence of the one is that of the other. Its body is a frame:
//
//	 0       4   5        8          16         20       24      40         40+n     44+n
//	+--------+---+--------+----------+----------+--------+-------+----------+--------+
//	| "tsCL" | 1 | 0 0 0  | sequence | previous | length | offer | n bytes  | sum    |   little-endian, CRC-32C
//	+--------+---+--------+----------+----------+--------+-------+----------+--------+
//
// previous is the checksum of the record before, offer a name that the writer knows its own message by, sum is over all before it. So a
// message that was changed, moved, or written behind another history is found by every node before it applies it. A message is published
// for one place (expected last sequence), so however often it is sent it stands once or never. The server's answer is a hint to look:
// the record at the place decides, read in Follow from this node's own disk. A record is on that disk before it is delivered: what a
// node has acknowledged or served survives even if the stream is lost, and a stream shorter than a local log stops that node.
//
//	DIR/                     the local log (package wal): record n is message n of the stream; snapshots
//	DIR/cluster.json         which stream this copy belongs to, and which node this is
//	DIR/cluster.seal         the secret that seals login codes
//	DIR/stream/, stream/LOCK what the embedded server keeps; flock: one process at a time
//	DIR/incoming.part/       a copy that is being fetched from another node
//	DIR/incoming/, install/  a whole copy that is about to replace the log in DIR; the same, while its files are moved
//
// # First formation, nodes that fall behind, replacing
//
// A stream is made once, when all members are there and none belongs to a stream. If one of them brings a log, the stream goes on behind
// it; two logs are refused. The stream is trimmed below what every node has in a snapshot, and when it grows too long below what those
// that are there have. A node that needs what is gone gets a backup (wal.Log.Backup) of another node, verified before it is installed.
// Replace or upgrade one member at a time, the next one when Status shows every member Current again. When the members together have lost
// what a local log has, the cluster stops: remove that node's cluster.json and stream directory, empty the directories of the others, and
// start all members.
//
// # Faults of JetStream (Jepsen, NATS 2.12.1, December 2025) and why they do not reach a caller
//
//	7564, 7567  acknowledged before it is synced     SyncAlways, and a node's own synced copy before it acknowledges; two histories
//	                                                 would not fit the checksums (TestRunning/PipeOnly, TestFaultsCluster_*, Test*/Damage)
//	7549        damaged files are served             the checksum of the record before, DamageError (Test*/Damage). The server may take
//	                                                 memory without bound over them: the units bound that (TestFaultsCluster_DiskDamage)
//	7556        damaged snapshots delete the stream  what was acknowledged is in every local log (TestTrimmed/LostStream)
//	7545        changing members loses records       members never change (TestConfig_Refused); acknowledgements that got lost or came
//	                                                 twice are hints (TestRunning/LostAnswers, ControlTrustsAnswers)
//
// # Not promised
//
//   - A node that was cut off learns so within three seconds. Until then it serves reads that may be older than what others see.
//   - Two nodes may hold one lease for as long as their clocks differ by more than leaseMargin. The log decides what they write.
//   - Disks that acknowledge a sync and do not keep it, on two members at once.
package cluster
