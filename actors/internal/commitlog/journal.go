package commitlog

import (
	"io"

	"github.com/tasard/tasard/wal"
)

// Journal keeps records durably and in order. Append, DropBefore and Read are called by one goroutine at a time,
// WriteSnapshot by another one.
type Journal interface {
	// Last is the sequence of the newest durable record, 0 if there is none. The first record has 1.
	Last() uint64
	// Append makes the records durable after the record with sequence expected, all of them or none. Errors:
	// ErrPosition if the journal does not end there; wal.ErrNoSpace and wal.ErrLimit if nothing was written and the
	// journal stays usable. After any other error nothing more is appended, and the next open shows whether the
	// records are there.
	Append(expected uint64, records [][]byte) (last uint64, err error)
	// Read visits the records from a sequence on, in order. A record is valid only during the call.
	Read(from uint64, visit func(sequence uint64, record []byte) error) error
	// Snapshot is the newest whole snapshot: the state after record sequence. ok is false without one. The caller
	// closes r.
	Snapshot() (sequence uint64, r io.ReadCloser, ok bool, err error)
	// WriteSnapshot stores the output of write as the state after record sequence.
	WriteSnapshot(sequence uint64, write func(io.Writer) error) error
	// DropBefore drops records that no kept snapshot needs.
	DropBefore(sequence uint64) error
	// Close releases the journal. Everything appended is durable already.
	Close() error
}

const (
	// BundleBytesMax is the size of the largest bundle: a message of a stream has at most 1 MiB, headers included.
	BundleBytesMax = 1<<20 - 16<<10
	// BundlePayloadMax is the space for records in a bundle, without its kind, length, node and token.
	BundlePayloadMax = BundleBytesMax - 32
	// RecordOverhead is the size of a record's length in a batch, and of its tag and length in a bundle.
	RecordOverhead = 4
)

const _ = uint(wal.RecordBytesMax - BundleBytesMax)

// BatchBytesMax is the size of the largest batch, as counted by BatchBytes. A bundled batch is a single record.
func BatchBytesMax(bundled bool) int {
	if bundled {
		return BundlePayloadMax
	}
	return wal.BatchBytesMax
}

// BatchBytes is the size of records in a batch.
func BatchBytes(records [][]byte) int {
	total := 0
	for _, record := range records {
		total += RecordOverhead + len(record)
	}
	return total
}
