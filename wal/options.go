package wal

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Options says how a log is kept. Only Clock is required.
type Options struct {
	// SegmentBytes is the size at which a segment file is full and the next one begins; a segment can
	// exceed it by one batch. 0 is 4 MiB, more than 64 MiB is an error. The tail segment is also held
	// in memory.
	SegmentBytes int
	// ReserveBytes is the free disk space below which Append and WriteSnapshot answer ErrNoSpace
	// without writing. 0 is 64 MiB, negative switches the check off: then a full disk poisons the log.
	ReserveBytes int64
	// Clock gives the time in the names of files that are kept aside, and how long the disk takes (Stats). Required.
	Clock func() time.Time
	// Logger gets what Open found and what was put aside. nil discards.
	Logger *slog.Logger

	disk *disk // nil = the real one
}

const (
	segmentBytesDefault = 4 << 20
	segmentBytesMax     = 64 << 20
	reserveBytesDefault = 64 << 20
	segmentFileBytesMax = segmentBytesMax + entryBytesMax
)

// withDefaults checks the options and fills in what is zero.
func (o Options) withDefaults() (Options, error) {
	if o.Clock == nil {
		return o, errors.New("check log options: Clock is nil")
	}
	if o.SegmentBytes < 0 || o.SegmentBytes > segmentBytesMax {
		return o, fmt.Errorf("check log options: SegmentBytes is %d, want 0 to %d", o.SegmentBytes, segmentBytesMax)
	}
	if o.SegmentBytes == 0 {
		o.SegmentBytes = segmentBytesDefault
	}
	if o.ReserveBytes == 0 {
		o.ReserveBytes = reserveBytesDefault
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.disk == nil {
		o.disk = realDisk()
	}
	return o, nil
}
