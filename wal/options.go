package wal

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Options configures a log. Only Clock is required.
type Options struct {
	// SegmentBytes is the size at which a new segment file begins. A segment can exceed it by one batch. tidwall/wal
	// keeps the newest segment in memory. 0 means 4 MiB; the maximum is 64 MiB.
	SegmentBytes int
	// ReserveBytes is the free disk space that writes must leave. Otherwise Append and WriteSnapshot return ErrNoSpace
	// and write nothing. 0 means 64 MiB. A negative value disables the check; then a full disk stops the log
	// (ErrPoisoned).
	ReserveBytes int64
	// Clock returns the time for the names of files moved aside and for Stats.Syncs. Required.
	Clock func() time.Time
	// Logger logs findings of Open and the names of files moved aside. nil logs nothing.
	Logger *slog.Logger

	disk *disk // nil = realDisk
}

const (
	segmentBytesDefault = 4 << 20
	segmentBytesMax     = 64 << 20
	reserveBytesDefault = 64 << 20
	segmentFileBytesMax = segmentBytesMax + entryBytesMax
)

// withDefaults checks the options and fills in zero fields.
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
