package wal

import (
	"slices"
	"time"
)

// Stats is how large a log is, and what it has done since it was opened.
type Stats struct {
	First, Last   uint64 // records that are in the log; Last is First-1 when there are none
	Segments      int
	LogBytes      int64 // of all segments
	Snapshots     int   // whole ones
	SnapshotBytes int64 // of all whole ones
	// SnapshotSequence and SnapshotAt are of the newest whole snapshot: the last record in it, and when it was finished. Zero without one.
	SnapshotSequence uint64
	SnapshotAt       time.Time

	Batches, Records uint64 // appended, each made durable
	Bytes            int64  // that the segments grew by with them
	Syncs            SyncTimes
}

// syncBounds is how many upper bounds SyncTimes has.
const syncBounds = 16

// SyncTimes is how long the disk took to make batches durable, counted by length. One that failed is counted too.
type SyncTimes struct {
	Counts [syncBounds + 1]uint64 // those up to each of SyncBounds, and last those beyond all
	Sum    time.Duration
}

// SyncBounds are the upper bounds of SyncTimes: from what a battery-backed cache takes to what makes a disk slow.
func SyncBounds() [syncBounds]time.Duration {
	const us, ms = time.Microsecond, time.Millisecond
	return [syncBounds]time.Duration{
		50 * us, 100 * us, 200 * us, 500 * us, 1 * ms, 2 * ms, 5 * ms, 10 * ms, 20 * ms, 50 * ms, 100 * ms, 200 * ms, 500 * ms,
		time.Second, 2 * time.Second, 5 * time.Second,
	}
}

// add counts one. A clock that was set back makes it none at all.
func (s *SyncTimes) add(took time.Duration) {
	took = max(0, took)
	bounds := SyncBounds()
	at, _ := slices.BinarySearch(bounds[:], took)
	s.Counts[at]++
	s.Sum += took
}

// Stats never waits for the disk.
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

// countSync counts how long a sync took that began at an instant.
func (l *Log) countSync(began time.Time) {
	took := l.options.Clock().Sub(began)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats.Syncs.add(took)
}
