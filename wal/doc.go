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
//   - After the first failed disk operation nothing more is written or synced (ErrPoisoned): the kernel may
//     drop the bytes and report success for the next sync.
//   - A restored backup is a whole directory or, also after a crash, one that Open refuses.
//
// It does not protect against forgery (checksums find accidents), against an older copy of the whole
// directory, or against disks that acknowledge a sync and do not keep it.
//
// # Files
//
//	LOCK                               empty; flock on it is the right to write
//	mark                               how far the log is known to be on disk, in two slots written in turn
//	00000000000000000042               a segment, named by the index of its first frame
//	snapshot-00000000000000000512      the state after record 512; .tmp while it is written
//	*.torn-TIME, *.damaged-TIME        bytes that were put aside; never read
//
// A segment is frames, each behind its length as the library writes it. A frame is one batch: a header with
// magic, version, sizes, its index, its first sequence, the checksum of the frame before it (the chain) and
// a checksum of the header; the records, each behind its length; a checksum of it all. Numbers are
// little-endian, checksums CRC-32C. Magic, version and header checksum keep their places in all versions: a
// newer one is told from damage and refused with FormatError. docs/log-format.md draws every byte, and says
// what a crash leaves at each step.
//
// # How data flows
//
// Append writes a frame through the library, syncs it, then moves the mark: nothing is seen or marked that a
// power cut could take back. WriteSnapshot writes beside the log and renames; DropBefore removes whole
// segments that two snapshots cover. Open takes the lock, reads the mark, verifies snapshots, scans all
// segments as one chain and decides: a frame that is not whole, at the very end, that the mark does not
// count, is a torn tail; all else is damage. Only then is anything changed, and the library let in.
// Backup sends the newest snapshot and what follows as a tar, verified on its way; NewBackupFile compresses
// it and ends it with a SHA-256. Repair gives up what stands behind damage, and keeps the bytes.
//
// # Where to start
//
//	log.go, compact.go                Append, Read; snapshots and what they allow to drop
//	open.go, examine.go, scan.go      what Open does, and how it tells a torn tail from damage
//	frame.go, mark.go, snapshot.go    the three formats
//	backup*.go, repair.go, verify.go  what commands do with a directory
//	disk.go                           every operation that changes the directory; tests let single ones fail
package wal
