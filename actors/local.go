package actors

import (
	"fmt"

	"github.com/tasard/tasard/wal"
)

// localJournal is a log in a directory.
type localJournal struct{ *wal.Log }

func openLocal(c Config) (Journal, error) {
	log, err := wal.Open(c.Dir, wal.Options{
		SegmentBytes: c.Log.SegmentBytes, ReserveBytes: c.Log.ReserveBytes, Clock: c.Clock, Logger: c.Logger,
	})
	if err != nil {
		return nil, err
	}
	return localJournal{log}, nil
}

// Append is Journal.
func (l localJournal) Append(expected uint64, records [][]byte) (uint64, error) {
	if last := l.Last(); last != expected {
		return 0, fmt.Errorf("append behind record %d: %w: it ends with %d", expected, ErrPosition, last)
	}
	return l.Log.Append(records)
}
