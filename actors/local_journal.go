package actors

import (
	"fmt"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/wal"
)

type (
	// Journal stores records durably and in order. The default is a log in a directory.
	Journal = commitlog.Journal
	// Shared is a Journal written by several nodes. All nodes get the same records in the same order.
	Shared = commitlog.SharedJournal
	// ClusterHealth is a node's view of its cluster.
	ClusterHealth = commitlog.ClusterHealth
)

// Errors of Shared.Ask.
var (
	ErrNotLeader      = commitlog.ErrNotLeader
	ErrOutcomeUnknown = commitlog.ErrOutcomeUnknown
)

// ErrPosition means that the newest record of the journal has an unexpected number (sequence), because another process
// has written to the journal.
var ErrPosition = commitlog.ErrPosition

// localJournal is a Journal of this node only, in files of a directory.
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

// Append implements Journal.
func (l localJournal) Append(expected uint64, records [][]byte) (uint64, error) {
	if last := l.Last(); last != expected {
		return 0, fmt.Errorf("append after record %d: %w: the last record is %d", expected, commitlog.ErrPosition, last)
	}
	return l.Log.Append(records)
}
