package commitlog

import (
	"io"

	"github.com/tasard/tasard/wal"
)

// Journal stores records durably and in order. Append, DropBefore and Read are called by one goroutine at a time,
// WriteSnapshot by another one.
type Journal interface {
	// Last returns the sequence of the newest durable record, or 0. The first record has sequence 1.
	Last() uint64
	// Append makes all records durable, or none. They follow the record with sequence expected. The error is ErrPosition
	// if the journal does not end there. After wal.ErrNoSpace and wal.ErrLimit nothing was written and the journal can
	// still be used. After any other error the journal cannot be used, and only the next open shows whether the records
	// were written.
	Append(expected uint64, records [][]byte) (last uint64, err error)
	// Read calls visit for the records from a sequence on, in order. record is valid only during the call.
	Read(from uint64, visit func(sequence uint64, record []byte) error) error
	// Snapshot returns a reader of the newest complete snapshot, the state after the record with the sequence. ok is
	// false if there is no snapshot. The caller closes r.
	Snapshot() (sequence uint64, r io.ReadCloser, ok bool, err error)
	// WriteSnapshot stores the output of write as the snapshot after the record with the sequence.
	WriteSnapshot(sequence uint64, write func(io.Writer) error) error
	// DropBefore drops records before the sequence that no stored snapshot needs.
	DropBefore(sequence uint64) error
	// Close releases the journal. Appended records are already durable.
	Close() error
}

const (
	// BundleBytesMax is the maximum size of a bundle. A message of a stream has at most 1 MiB, including headers.
	BundleBytesMax = 1<<20 - 16<<10
	// BundlePayloadMax is the maximum size of all records in a bundle. The rest is for its kind, length, node and token.
	BundlePayloadMax = BundleBytesMax - 32
	// RecordOverhead is the size of the length of a record in a batch, or of its tag and length in a bundle.
	RecordOverhead = 4
)

const _ = uint(wal.RecordBytesMax - BundleBytesMax)

// BatchBytesMax returns the maximum size of a batch, as computed by BatchBytes. bundled means that it becomes a bundle.
func BatchBytesMax(bundled bool) int {
	if bundled {
		return BundlePayloadMax
	}
	return wal.BatchBytesMax
}

// BatchBytes returns the size of records in a batch, including overhead.
func BatchBytes(records [][]byte) int {
	total := 0
	for _, record := range records {
		total += RecordOverhead + len(record)
	}
	return total
}
