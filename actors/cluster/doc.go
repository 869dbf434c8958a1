// Package cluster makes several nodes one service: their log is one stream with a copy on each member, kept by an embedded NATS server
// with JetStream. Open joins; the Journal that it gives is an actors.Shared. Only the command serve links it.
//
// # Members and guests
//
// Three or five members, named in every node's configuration, each keep a copy of the stream; the list never changes. A node that is not
// in the list is a guest: it writes, and keeps a copy of its own as every node does, but has no vote and no part of the stream, so it
// may come and go. A machine that is lost is replaced by an empty directory under the same name and number. There is no call that
// changes the list: of all that NATS does, changing members of a running group is what lost data most often.
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
// previous is the checksum of the record before, offer a name that the writer knows its own message by, sum is over all before it.
// So a message that was changed, moved, or written behind another history is found by every node before it applies it.
//
// A message is published for one place (expected last sequence), so however often it is sent it stands once or never: there are no
// message ids. What the server answers is a hint to look. The record at the place decides, and it is seen where everything else
// is seen: in Follow, on this node's own disk.
//
// # What a node keeps
//
//	DIR/                     the local log (package wal): record n is message n of the stream; snapshots
//	DIR/cluster.json         which stream this copy belongs to, and who this node is
//	DIR/cluster.seal         the secret that seals login codes
//	DIR/stream/              what the embedded server keeps
//	DIR/stream/LOCK          flock: one process at a time
//	DIR/incoming.part/       a copy that is being fetched from another node
//	DIR/incoming/            a whole copy; the log in DIR is about to be replaced by it
//	DIR/install/             the same, the old log is gone; its files are being moved to DIR
//
// A record is on the node's own disk before it is delivered: what a node has acknowledged or served survives even if the stream is lost.
// The stream may be shorter than a local log only through such a loss; then the node says so and stops.
//
// # First formation
//
// A stream is made once, when all members are there and none belongs to a stream. If one of them brings a log (a node that was
// alone), the stream goes on behind it and the others get a copy. Two logs are refused: somebody must choose.
//
// # Behind the stream
//
// The stream is trimmed below what every node has in a snapshot, and when it grows too long below what those that are there have. A node
// that needs what is gone gets a backup (wal.Log.Backup) of another node, through the cluster, verified as every backup is, before
// anything opens the log. It is streamed rather than kept in an object store: nothing has to be replicated, fenced or removed.
//
// # Replacing, upgrading, restoring
//
// One member at a time: the next one only when Status shows every member Current again. Two members without their part of the stream
// at once have no majority, and what only they had acknowledged is in their local logs alone. When the members together have lost what
// a local log has, the cluster stops, and is formed again from that log: its cluster.json and stream directory are removed, the
// directories of the others emptied, and all members started.
//
// # What others found in JetStream
//
// The Jepsen report on NATS 2.12.1 (December 2025; jepsen.io/analyses/nats-2.12.1) and its issues, and why they do not reach a caller here:
//
//	7564  the server acknowledges before it syncs,    SyncAlways, in code and not in a file; and a node's own synced copy before it
//	      every two minutes                           acknowledges (TestRunning/PipeOnly, TestFaultsCluster_*)
//	7567  one node that loses its unsynced end, and   the same: what is acknowledged was synced by a majority and by the node that
//	      pauses, make two histories                  says so; two histories would not fit the checksums (Test*/Damage)
//	7549  changed or cut .blk files are served, or    every record carries the checksum of the one before it; a node that reads
//	      the stream loses records                    another one stops with a DamageError before it applies it (Test*/Damage).
//	                                                  The server may even get lost while it reads such a file, and take memory
//	                                                  without bound: a node that does not listen in time ends, if memory lasts
//	                                                  so long: the units bound that (TestFaultsCluster_DiskDamage)
//	7556  changed snapshots make a node delete the    a stream that is shorter than a local log stops that node, and nobody makes it
//	      stream                                      again: what was acknowledged is in every local log (TestTrimmed/LostStream).
//	                                                  A member that keeps no part any more is not Current in every Status
//	7545  changing members loses records              members never change (TestConfig_Refused, TestRunning/Refused)
//	      acknowledgements that got lost, or came     answers are hints; the place decides (TestRunning/LostAnswers, and its
//	      twice                                       control TestRunning/ControlTrustsAnswers)
//
// # Goroutines
//
//	server      starts the embedded server, then ends                        Close
//	watch       standing, reports, trimming                                  Close
//	copies      hand a backup to another node, two at once                   Close
//	lease       renews, one for each lease held                              Release, Close
//
// # Not promised
//
//   - A node that was cut off learns so within three seconds. Until then it serves reads that may be older than what others see.
//   - Two nodes may hold one lease for as long as their clocks differ by more than leaseMargin. What they write is decided by the log.
//   - Disks that acknowledge a sync and do not keep it, on two members at once.
//   - Who holds a certificate of the cluster's authority, and the secret if there is one, can do anything.
package cluster
