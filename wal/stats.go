package wal

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Stats is the size of a log, and counters since its opening.
type Stats struct {
	First, Last   uint64 // numbers of the first and the last record; Last is First-1 if there are none
	Segments      int
	LogBytes      int64 // size of all segments
	Snapshots     int   // undamaged snapshots
	SnapshotBytes int64 // size of those snapshots
	// SnapshotSequence is the number of the newest undamaged snapshot's last record. SnapshotAt is the time of its
	// completion. Both are zero if there is none.
	SnapshotSequence uint64
	SnapshotAt       time.Time

	Batches, Records uint64               // durable batches and records
	Bytes            int64                // size of those batches in the segments (log files)
	Syncs            prometheus.Histogram // durations of batch syncs, including failed ones
}

// newSyncHistogram returns a histogram of the durations of batch syncs. Its bounds cover disks from a battery-backed
// cache to a very slow one.
func newSyncHistogram() prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "tasard_log_sync_duration_seconds", Help: "Time of the disk to make a batch durable.",
		Buckets: []float64{5e-05, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5},
	})
}

// Stats returns the current statistics. It does not wait for the disk.
func (l *Log) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stats
	s.First, s.Last, s.Segments = l.segments[0].start.sequence, l.next.sequence-1, len(l.segments)
	for _, segment := range l.segments {
		s.LogBytes += segment.bytes
	}
	for _, snapshot := range l.snapshots { // sorted by sequence
		if snapshot.damage == nil {
			s.Snapshots++
			s.SnapshotBytes += snapshot.bytes
			s.SnapshotSequence, s.SnapshotAt = snapshot.sequence, snapshot.finishedAt
		}
	}
	return s
}
