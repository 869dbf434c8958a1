package actors

import (
	"fmt"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/wal"
)

type (
	// Journal keeps records durably and in order. The local one is a log in a directory; only its package knows that, so a replicated stream
	// can take its place.
	Journal = commitlog.Journal
	// Shared is a Journal that several nodes write, all of them the same records in one order.
	Shared = commitlog.SharedJournal
	// ClusterHealth is how a node stands with the others of its cluster.
	ClusterHealth = commitlog.ClusterHealth
)

// ErrPosition says that a journal did not end where its writer thought: another process writes to it.
var ErrPosition = commitlog.ErrPosition

// localJournal is a log in a directory.
type localJournal struct{ *wal.Log }

func openLocal(c Config) (commitlog.Journal, error) {
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
		return 0, fmt.Errorf("append behind record %d: %w: it ends with %d", expected, commitlog.ErrPosition, last)
	}
	return l.Log.Append(records)
}
