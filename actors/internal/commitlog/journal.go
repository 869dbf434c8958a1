package commitlog

import (
	"io"

	"github.com/tasard/tasard/wal"
)

// Journal stores records durably and in order. Append, DropBefore and Read must not run concurrently with each other.
// WriteSnapshot may run concurrently with them.
type Journal interface {
	// Last returns the number (sequence) of the newest durable record, or 0 if there is none. The first record has
	// sequence 1.
	Last() uint64
	// Append makes all records durable, or none, and returns the new Last. ErrPosition means that Last was not
	// expected. After wal.ErrNoSpace and wal.ErrLimit nothing was written, and the journal can still be used. After any
	// other error the journal cannot be used, and only the next open shows whether the records were written.
	Append(expected uint64, records [][]byte) (last uint64, err error)
	// Read calls visit for each record in order, beginning with sequence from. record is valid only during the call.
	Read(from uint64, visit func(sequence uint64, record []byte) error) error
	// Snapshot opens the newest complete snapshot: the state after the record with the returned sequence. ok is false
	// if there is no snapshot. The caller closes r.
	Snapshot() (sequence uint64, r io.ReadCloser, ok bool, err error)
	// WriteSnapshot stores the output of write as a snapshot of the state after the record with the given sequence.
	WriteSnapshot(sequence uint64, write func(io.Writer) error) error
	// DropBefore may delete records before the given sequence. It keeps records that a stored snapshot needs.
	DropBefore(sequence uint64) error
	// Close releases the journal. Appended records are already durable.
	Close() error
}

const (
	// BundleBytesMax is the maximum size of an encoded record.Bundle, which contains all records of one write in a
	// cluster. A bundle is one raft entry, which package wal stores as one record, headers included.
	BundleBytesMax = 1<<20 - 16<<10
	// BundlePayloadMax is the maximum total size of a bundle's records. The rest of a bundle (kind, length, node and
	// token) takes at most 32 bytes.
	BundlePayloadMax = BundleBytesMax - 32
	// RecordOverhead is the maximum number of bytes before each record: its length in a batch, or its tag and length in
	// a bundle.
	RecordOverhead = 4
)

const _ = uint(wal.RecordBytesMax - BundleBytesMax)

// BatchBytesMax returns the limit of BatchBytes for a batch, or for a bundle if bundled is true.
func BatchBytesMax(bundled bool) int {
	if bundled {
		return BundlePayloadMax
	}
	return wal.BatchBytesMax
}

// BatchBytes returns the encoded size of records in a batch.
func BatchBytes(records [][]byte) int {
	total := 0
	for _, record := range records {
		total += RecordOverhead + len(record)
	}
	return total
}
