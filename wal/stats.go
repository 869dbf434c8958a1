package wal

import (
	"slices"
	"time"
)

// Stats has the size of a log and counts of the work done since the log was opened.
type Stats struct {
	First, Last   uint64 // numbers of the first and the last record; Last is First-1 if there are none
	Segments      int
	LogBytes      int64 // size of all segments
	Snapshots     int   // undamaged snapshots
	SnapshotBytes int64 // size of those snapshots
	// SnapshotSequence is the number of the last record in the newest undamaged snapshot. SnapshotAt is the time when
	// that snapshot was finished. Both are zero if there is none.
	SnapshotSequence uint64
	SnapshotAt       time.Time

	Batches, Records uint64 // durable batches and records
	Bytes            int64  // size of those batches in the segments (log files)
	Syncs            SyncTimes
}

// syncBounds is the number of bounds that SyncBounds returns.
const syncBounds = 16

// SyncTimes is a histogram of the durations of batch syncs, including failed ones.
type SyncTimes struct {
	Counts [syncBounds + 1]uint64 // one for each of SyncBounds; the last has no upper bound
	Sum    time.Duration
}

// SyncBounds returns the upper bounds of SyncTimes. They cover disks from a battery-backed cache to a very slow one.
func SyncBounds() [syncBounds]time.Duration {
	const us, ms = time.Microsecond, time.Millisecond
	return [syncBounds]time.Duration{
		50 * us, 100 * us, 200 * us, 500 * us, 1 * ms, 2 * ms, 5 * ms, 10 * ms, 20 * ms, 50 * ms, 100 * ms, 200 * ms, 500 * ms,
		time.Second, 2 * time.Second, 5 * time.Second,
	}
}

// add counts one sync. If the clock was set back, elapsed is negative and counts as 0.
func (s *SyncTimes) add(elapsed time.Duration) {
	elapsed = max(0, elapsed)
	bounds := SyncBounds()
	i, _ := slices.BinarySearch(bounds[:], elapsed)
	s.Counts[i]++
	s.Sum += elapsed
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

// countSync counts a sync that began at start and has just ended.
func (l *Log) countSync(start time.Time) {
	elapsed := l.options.Clock().Sub(start)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats.Syncs.add(elapsed)
}
