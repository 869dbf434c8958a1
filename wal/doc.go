// Package wal is a write-ahead log. It appends batches of records, and keeps snapshots of the state after a record. It
// does not interpret records. The library tidwall/wal writes the files. This package adds checksums, links between
// batches, a full check before opening, a lock, directory syncs, a high-water mark (how far the log is on disk), and a
// stop at the first failed disk operation.
//
// # Promises
//
//   - Append returns after its batch is on disk. After a crash all records of a batch are there, or none.
//   - Records have consecutive sequence numbers from 1. A number never means two different records.
//   - Open verifies every byte. A record read is equal to the record written.
//   - Open moves a torn tail (an incomplete last write) to another file. For any other damage it returns an error with
//     the position of the damage, and changes nothing on disk.
//   - After the first failed disk operation nothing more is written or synced (ErrPoisoned).
//   - After a crash in Create the directory is complete, or Open refuses it.
//
// Checksums find accidents, not forgery. An older copy of the whole directory is accepted. A disk that acknowledges a
// sync without doing it can lose records.
//
// # Files
//
//	LOCK                               empty; a process with an exclusive flock on it may write
//	mark                               high-water mark: the log is on disk up to it; two slots, written in turn
//	00000000000000000042               a segment, named by the index of its first frame
//	snapshot-00000000000000000512      the state after record 512; .tmp while it is written
//	*.torn-TIME, *.damaged-TIME        bytes that were moved aside; never read
//
// docs/log-format.md describes every byte, and the effect of a crash at each step.
//
// # Terms
//
//	frame:      one batch of records on disk: a header, the records and a checksum
//	entry:      a frame with the length that tidwall/wal writes before it
//	segment:    one log file, a list of entries
//	chain:      the checksum of the previous frame, in the header of each frame
//	index:      the number of a frame; the number of a record is its sequence number
//	mark:       the high-water mark
//	torn tail:  the incomplete bytes of a last write that a crash interrupted
//	damage:     any other bytes that differ from those written
//	move aside: to rename a file, so that the log ignores it
//	poisoned:   stopped after a failed disk operation
//
// # How data flows
//
//	Create         begin a log with a snapshot from elsewhere, such as a backup
//	Replace        the same, in place of another log
//	Append         write the frame, sync it, advance the mark
//	WriteSnapshot  write and sync a temporary file, rename it, sync the directory
//	DropBefore     remove whole segments that two snapshots cover
//	Open           take the lock, verify snapshots and segments, compare with the mark, cut a torn tail
//	WriteBackup    write a state, compressed and with its checksum, as a backup file
//	Repair         cut a damaged log at the damage and keep the bytes
//
// # Where to start
//
//	log.go                            Append and Read
//	open.go, verify.go                opening, and distinguishing a torn tail from damage
//	frame.go, mark.go, snapshot.go    the three formats; a snapshot also makes older files obsolete
//	backup.go, create.go, repair.go   the operations behind commands
//	disk.go                           file names, the lock, and every operation that changes the directory
package wal
