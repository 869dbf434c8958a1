package wal

import (
	"slices"
	"time"
)

// Stats is the size of a log and the work done since it was opened.
type Stats struct {
	First, Last   uint64 // records in the log; Last is First-1 if there are none
	Segments      int
	LogBytes      int64 // of all segments
	Snapshots     int   // whole ones
	SnapshotBytes int64 // of all of them
	// SnapshotSequence is the last record in the newest whole snapshot, SnapshotAt when it was finished. Zero without
	// one.
	SnapshotSequence uint64
	SnapshotAt       time.Time

	Batches, Records uint64 // appended and durable
	Bytes            int64  // of them in segments
	Syncs            SyncTimes
}

// syncBounds is the number of upper bounds of SyncTimes.
const syncBounds = 16

// SyncTimes is a histogram of the syncs of batches, failed ones included.
type SyncTimes struct {
	Counts [syncBounds + 1]uint64 // by upper bound; the last has none
	Sum    time.Duration
}

// SyncBounds are the upper bounds of SyncTimes, from a battery-backed cache to a very slow disk.
func SyncBounds() [syncBounds]time.Duration {
	const us, ms = time.Microsecond, time.Millisecond
	return [syncBounds]time.Duration{
		50 * us, 100 * us, 200 * us, 500 * us, 1 * ms, 2 * ms, 5 * ms, 10 * ms, 20 * ms, 50 * ms, 100 * ms, 200 * ms, 500 * ms,
		time.Second, 2 * time.Second, 5 * time.Second,
	}
}

// add counts one sync. A clock that was set back makes its duration 0.
func (s *SyncTimes) add(took time.Duration) {
	took = max(0, took)
	bounds := SyncBounds()
	at, _ := slices.BinarySearch(bounds[:], took)
	s.Counts[at]++
	s.Sum += took
}

// Stats returns the present numbers. It does not wait for the disk.
func (l *Log) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stats
	s.First, s.Last, s.Segments = l.segments[0].start.sequence, l.next.sequence-1, len(l.segments)
	for _, segment := range l.segments {
		s.LogBytes += segment.bytes
	}
	for _, snapshot := range l.snapshots { // ascending
		if snapshot.damage == nil {
			s.Snapshots++
			s.SnapshotBytes += snapshot.bytes
			s.SnapshotSequence, s.SnapshotAt = snapshot.sequence, snapshot.at
		}
	}
	return s
}

// countSync counts a sync that began at an instant and ends now.
func (l *Log) countSync(began time.Time) {
	took := l.options.Clock().Sub(began)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats.Syncs.add(took)
}
