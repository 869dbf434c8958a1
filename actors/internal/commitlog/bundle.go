package commitlog

import "github.com/tasard/tasard/wal"

const (
	// BundleBytesMax bounds a bundle. It leaves room for what a stream puts around it: a message of one has at most 1 MiB.
	BundleBytesMax = 1<<20 - 16<<10
	// bundleHeaderBytes is what a bundle needs beside its records: its kind and length, node and token.
	bundleHeaderBytes = 32
	// BundleRecordOverhead is what it needs for each record beside the record: a tag, and a length below 2 MiB.
	BundleRecordOverhead = 4
)

// The relations that the limits rest on.
const (
	_ = uint(wal.RecordBytesMax - BundleBytesMax)
	_ = uint(recordOverheadBytes - BundleRecordOverhead)
)

// BundlePayloadMax is what a bundle has for records, each with bundleRecordBytes beside it.
const BundlePayloadMax = BundleBytesMax - bundleHeaderBytes
