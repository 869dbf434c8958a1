// Package wal keeps records: an append-only log of batches over tidwall/wal, and snapshots of what the
// records amount to. It knows nothing of what is in a record. It adds to the library what that lacks:
// checksums, a chain, a check of every byte before anything is opened, a lock, directory syncs, a mark of
// what was acknowledged, and a stop at the first failed disk operation.
//
// # Promises
//
//   - Append returns after its batch is on disk. After a crash all records of a batch are there, or none.
//   - Records have consecutive sequences from 1, and a sequence never means two different records.
//   - Open has verified every byte. A record that is read is the record that was written.
//   - A torn tail is cut and kept. Any other damage is refused with file, offset, sequence, expected and
//     found, and nothing on disk is changed.
//   - After the first failed disk operation nothing more is written or synced (ErrPoisoned).
//
// # Files
//
// All numbers are little-endian; all checksums are CRC-32C (Castagnoli). One directory holds:
//
//	LOCK                       empty; flock on it is the right to write
//	mark                       how far the log is known to be on disk
//	00000000000000000001       a segment, named by the index of its first frame
//	00000000000000000042       the next one
//	snapshot-00000000000000000512          the state after record 512
//	snapshot-00000000000000000700.tmp      a snapshot being written
//	*.torn-TIME, *.damaged-TIME            bytes that were put aside; never read
//
// A segment is frames one behind the other, each after its length as the library writes it. Nothing else
// is in it: no header, no padding. A segment that reaches its size is followed at once by an empty one.
//
//	+----------------+-----------+----------------+-----------+----
//	| length uvarint | frame     | length uvarint | frame     | ...
//	+----------------+-----------+----------------+-----------+----
//
// A frame is one batch, and one entry of the library:
//
//	 0       4   5        8       12       16
//	+--------+---+--------+--------+--------+
//	| "tsWL" | 1 | 0 0 0  | count  | payload|   version, records, bytes of payload
//	+--------+---+--------+--------+--------+
//	 16                24                32
//	+-----------------+-----------------+
//	| frame index     | first sequence  |       both count from 1
//	+-----------------+-----------------+
//	 32       36       40
//	+--------+--------+
//	| chain  | header |                          chain: checksum of the frame before, 0 in frame 1
//	+--------+--------+                          header: checksum of bytes 0 to 35
//	 40                              40+payload
//	+--------+--------+--------+-----+--------+
//	| length | record | length | ... | frame  |   lengths of 4 bytes; at the end the checksum of all
//	+--------+--------+--------+-----+--------+   bytes before it
//
// The mark has two slots of 512 bytes, written in turn; the valid one with the higher generation counts:
//
//	 0       4   5        8            16             24            32            40      44       508
//	+--------+---+--------+------------+--------------+-------------+-------------+-------+--------+----------+
//	| "tsMK" | 1 | 0 0 0  | generation | oldest frame | next frame  | next record | chain | zeros  | checksum |
//	+--------+---+--------+------------+--------------+-------------+-------------+-------+--------+----------+
//
// It says: every frame from the oldest up to the one before next was on disk, and the checksum of the last
// of them is chain.
//
// A snapshot:
//
//	 0       4   5        8            16       20                 20+n       28+n       32+n
//	+--------+---+--------+------------+--------+------------------+----------+----------+
//	| "tsSN" | 1 | 0 0 0  | sequence   | header | n bytes of state | n        | checksum |
//	+--------+---+--------+------------+--------+------------------+----------+----------+
//
// header is the checksum of bytes 0 to 15, the last checksum covers everything before it.
//
// In a frame and in a snapshot, magic, version byte and header checksum keep their places in all versions,
// in a slot of the mark magic, version and checksum: a newer version is told from damage and refused with
// FormatError.
//
// # Opening
//
//  1. Make the directory, sync its parents, take the lock without waiting.
//  2. Sync the last two segments and have the kernel forget them, so that what follows is read from the disk.
//     List the names. A file that the library would act on and that we never make is refused.
//  3. Read the mark, verify every snapshot, scan every segment: each name is the index that the frame
//     before ends with, each frame has its place, its chain and its checksums.
//  4. Decide. A frame that is not whole is a torn tail if a write could have left it so, it is in the last
//     segment, no whole frame of its index or a later one follows at any byte, it is no longer than a
//     batch can be, and the mark does not say that it had been synced. Else it is damage. The log must
//     begin and end where the mark says or beyond, with the same checksum there; it must reach the
//     sequence of every snapshot and begin no later than right after the newest whole one. A damaged
//     snapshot is passed over, and said so, when all of that holds for the one before, or for none.
//  5. Only now change something: remove unfinished snapshots; copy the torn tail to a file, sync it, then
//     cut the segment and sync it.
//  6. Let the library open the segments, sync the last one and the directory, write and sync the mark.
//
// Recovery says what was found. An ambiguous tail is one of which the mark cannot say that it was never
// acknowledged, because the mark was lost, half lost, or older than the last whole frame.
//
// # Backups
//
// A backup is the newest whole snapshot and every frame behind it that was durable at one moment. Log.Backup
// takes it from a log in use: it pins the snapshot and what follows, so that neither retire nor DropBefore removes what is
// still to be read, and copies segments up to their last frame of that moment. All goes through the same
// scan as at Open, so damage is never copied. What comes out is a tar of a whole directory:
//
//	backup.json                            what there is: format, instant, records, sizes
//	mark                                   ends exactly where the copy ends
//	snapshot-00000000000000000700          unless all records are in the log
//	00000000000000000042                   the segments
//
// A backup file is that tar in blocks of at most 1 MiB, each a zstd frame of its own behind a guard, which
// is a frame that zstd passes over. The last guard stands alone:
//
//	 0                8        12  13     14   16       20       24       32        40      44        48
//	+----------+----+--------+---+------+-----+--------+--------+--------+---------+-------+---------+-------
//	| 184D2A5E | 40 | "tsBK" | 1 | kind | 0 0 | length | frame  | number | content | chain | header  | frame
//	+----------+----+--------+---+------+-----+--------+--------+--------+---------+-------+---------+-------
//
// kind is 1 for a block and 2 for the end; length and frame are size and checksum of the zstd frame, number
// counts blocks, content the bytes before it, chain is the header checksum of the guard before. zstd alone
// would not do: it does not notice every changed bit, nor a frame that is missing.
//
// RestoreBackup writes the mark first. It says how far the log goes, so until the last frame is there Open
// refuses the directory, after a crash as well.
//
// # Crashes
//
// A crash of the process keeps everything that was written; a power cut keeps what was synced and any part
// of the rest, in any order. What each step leaves:
//
//	Append
//	 before or in the write      Nothing, or part of a frame at the end. Not acknowledged. The part has no
//	                             whole frame behind it, because there is one write at a time, and the mark
//	                             ends before it: cut.
//	 after the write             Perhaps the whole frame. It is taken, although it was not acknowledged: all
//	                             of it or nothing. Open syncs it before anybody reads it.
//	 after the sync              The whole frame. The mark may be one frame behind, which proves less and
//	                             nothing wrong.
//	 after the mark              Acknowledged. The mark is not synced: after a power cut it may be older or
//	                             half written, never ahead, for it is written after the sync. A mark that is
//	                             behind takes nothing away; it only cannot convict a damaged last frame.
//	 a segment becomes full      The library syncs it before it makes the next one, so a segment that has a
//	                             successor is whole. The successor's name is synced before the batch is
//	                             acknowledged. Without the name the log ends with the full segment, and
//	                             the library makes the next one again.
//	WriteSnapshot
//	 temporary file              Ignored and removed. The records are all in the log.
//	 after the rename            The file was synced before: whole under its name, or still temporary.
//	 removing the older one      Only after the directory sync. Two whole snapshots, or three.
//	DropBefore
//	 mark, both slots, synced    The mark allows the log to begin later. Nothing is gone yet.
//	 each removal, synced        Oldest first: the log stays one run and begins at or before what the mark
//	                             allows. The older of the two snapshots kept still has all that follows it.
//	Open
//	 tail copied, not cut        The tail is found again and copied again.
//	 tail cut                    The log ends with a whole frame.
//	 first slot of the mark      The other slot is still whole.
//	Close                        The mark is synced, so a clean stop is proved after a power cut too.
//	Repair
//	 any step                    The mark is written last. Until then the directory is refused as before,
//	                             or what is left is whole already.
//
// A failed write or sync leaves the disk in a state that the process cannot know: the kernel may drop the
// bytes and report success for the next sync. So there is no next one: the log is poisoned, and the next
// Open reads what the disk holds, not what the kernel remembers (Linux; elsewhere start the machine again).
//
// # Not promised
//
//   - Against forgery: checksums find accidents. Who can write the files can write a valid log.
//   - When the mark was lost together with power, damage in the last batch cannot be told from a torn
//     tail. It is cut, kept and reported as ambiguous, and a log cut exactly between two batches looks
//     whole.
//   - An older copy of the whole directory, mark included, is a whole log.
//   - A record that holds a copy of a later frame of its own log, byte for byte, in a torn tail: Open then
//     refuses rather than cuts.
//   - Disks that acknowledge a sync and do not keep it, and file systems that reorder across a sync.
//   - Network file systems, where flock may not exclude other machines.
package wal
