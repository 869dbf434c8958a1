package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// store is the part of tidwall.Log that Log uses.
type store interface {
	Write(index uint64, data []byte) error
	Sync() error
	ClearCache() error
	Close() error
}

// Log is an open log. Only one goroutine at a time may call Append, Read, DropBefore and Close. All other methods may
// be called concurrently.
type Log struct {
	dir        string
	options    Options
	disk       *disk
	lock       *os.File
	store      store
	markWriter *markWriter // of the high-water mark
	recovery   Recovery

	writeMu    sync.Mutex // held by Append, DropBefore and Close
	snapshotMu sync.Mutex // held by WriteSnapshot and Close; locked before writeMu
	frame      []byte     // buffer for Append's batch; guarded by writeMu

	mu        sync.Mutex // guards the fields below; never held during a disk operation
	segments  []segment
	next      position
	snapshots []SnapshotReport
	cause     error // error of the first failed disk operation
	closed    bool
	stats     Stats // counts of appends since Open; Log.Stats computes the sizes
}

// Recovery reports what Open found.
func (l *Log) Recovery() Recovery { return l.recovery }

// First returns the sequence number of the oldest record in the log, or 1 if there was never one.
func (l *Log) First() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.segments[0].start.sequence
}

// Last returns the sequence number of the newest record on disk, or 0 if there was never one.
func (l *Log) Last() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next.sequence - 1
}

// Append writes the records as one batch, syncs it and returns the sequence number of the last record. After a crash
// the log contains all records of the batch or none. An empty batch writes nothing. After ErrLimit and ErrNoSpace
// nothing was written and the log can still be used. After any other error (ErrPoisoned with its cause, ErrClosed) the
// log can't be used, and only the next Open shows whether the batch is on disk.
func (l *Log) Append(records [][]byte) (last uint64, err error) {
	l.writeMu.Lock()
	defer l.writeMu.Unlock()
	if err := l.checkUsable(); err != nil {
		return 0, err
	}
	if len(records) == 0 {
		return l.Last(), nil
	}
	payload, err := checkBatch(records)
	if err != nil {
		return 0, err
	}
	if err := l.CheckSpace(int64(payload)); err != nil {
		return 0, err
	}
	l.frame = appendFrame(l.frame[:0], l.next, records)
	end := position{
		frame:    l.next.frame + 1,
		sequence: l.next.sequence + uint64(len(records)),
		chain:    binary.LittleEndian.Uint32(l.frame[len(l.frame)-frameTrailerBytes:]),
	}
	if err := l.commit(end); err != nil {
		return 0, l.poison(fmt.Errorf("append records %d to %d: %w", l.next.sequence, end.sequence-1, err))
	}
	return end.sequence - 1, nil
}

// CheckSpace returns ErrNoSpace if the disk has no space for a batch with a payload of this many bytes. It also returns
// errors of reading the free space.
func (l *Log) CheckSpace(bytes int64) error {
	return l.disk.checkSpace(l.dir, l.options.ReserveBytes, bytes+entryBytesMax-BatchBytesMax)
}

// checkBatch checks the limits and returns the size of the payload.
func checkBatch(records [][]byte) (int, error) {
	if len(records) > BatchRecordsMax {
		return 0, fmt.Errorf("append %d records: %w: at most %d in a batch", len(records), ErrLimit, BatchRecordsMax)
	}
	payload := 0
	for i, r := range records {
		if len(r) == 0 || len(r) > RecordBytesMax {
			return 0, fmt.Errorf("append record %d of %d bytes: %w: want 1 to %d", i, len(r), ErrLimit, RecordBytesMax)
		}
		payload += recordPrefixBytes + len(r)
	}
	if payload > BatchBytesMax {
		return 0, fmt.Errorf("append %d bytes: %w: at most %d in a batch", payload, ErrLimit, BatchBytesMax)
	}
	return payload, nil
}

// commit writes and syncs l.frame, then advances the high-water mark, then changes the state for readers. So neither
// the mark nor a reader refers to a frame that a power failure could undo.
func (l *Log) commit(end position) error {
	if err := l.store.Write(l.next.frame, l.frame); err != nil {
		return err
	}
	start := l.options.Clock()
	err := l.store.Sync()
	l.stats.Syncs.Observe(max(0, l.options.Clock().Sub(start)).Seconds()) // a clock that was set back counts as no time
	if err != nil {
		return err
	}
	opened, err := l.openedSegments(end)
	if err != nil {
		return err
	}
	l.markWriter.mark.end = end
	if err := l.markWriter.write(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.segments = append(l.segments, opened...)
	holder := len(l.segments) - 1
	if l.segments[holder].start == end { // empty, after a full one
		holder--
	}
	entryBytes := int64(len(binary.AppendUvarint(nil, uint64(len(l.frame)))) + len(l.frame))
	l.segments[holder].bytes += entryBytes
	l.stats.Batches++
	l.stats.Records += end.sequence - l.next.sequence
	l.stats.Bytes += entryBytes
	l.next = end
	return nil
}

// openedSegments returns the segments that tidwall/wal opened for l.frame, and makes their names durable: an empty one
// after a write that filled its segment, and one before a write if Open found the last segment over the limit.
func (l *Log) openedSegments(end position) (opened []segment, err error) {
	for _, start := range []position{l.next, end} {
		path := segmentPath(l.dir, start.frame)
		if path == l.segments[len(l.segments)-1].path {
			continue
		}
		_, err := os.Stat(path)
		if err == nil {
			opened = append(opened, segment{path: path, start: start})
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	if len(opened) == 0 {
		return nil, nil
	}
	if err := l.disk.syncDir(l.dir); err != nil {
		return nil, err
	}
	return opened, l.store.ClearCache() // of the previous segment
}

// checkUsable returns nil if the log can be written, else ErrClosed or ErrPoisoned.
func (l *Log) checkUsable() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return ErrClosed
	case l.cause != nil:
		return fmt.Errorf("%w: %w", ErrPoisoned, l.cause)
	}
	return nil
}

// poison stops the log. All later calls return the cause of the first failure.
func (l *Log) poison(cause error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause == nil {
		l.cause = cause
		l.options.Logger.Error("log stopped", "cause", cause.Error())
	}
	return fmt.Errorf("%w: %w", ErrPoisoned, l.cause)
}

// errStopScan ends a scan early.
var errStopScan = errors.New("stop")

// Read calls visit for each record from number start to Last, in order, and verifies the frames again. A record is
// valid only during the call of visit. Read returns the first error of visit unchanged. A start before First is an
// error. A start after Last visits nothing.
func (l *Log) Read(start uint64, visit func(sequence uint64, record []byte) error) error {
	l.mu.Lock()
	segments, end, closed := slices.Clone(l.segments), l.next, l.closed
	l.mu.Unlock()
	if closed {
		return ErrClosed
	}
	if first := segments[0].start.sequence; start < first {
		return fmt.Errorf("read from record %d: the log begins with %d", start, first)
	}
	for len(segments) > 1 && segments[1].start.sequence <= start {
		segments = segments[1:]
	}
	files := make([]numberedFile, len(segments))
	for i, s := range segments {
		files[i] = numberedFile{s.start.frame, s.path}
	}
	result, err := scan(files, mark{end: end}, func(_ string, _ int64, f frame) error {
		if f.index >= end.frame {
			return errStopScan // the frame is being appended
		}
		if f.last() < start {
			return nil
		}
		return f.records(func(sequence uint64, record []byte) error {
			if sequence < start {
				return nil
			}
			return visit(sequence, record)
		})
	})
	if err != nil && !errors.Is(err, errStopScan) {
		return err
	}
	return result.checkEnd(end)
}

// Close syncs the high-water mark, closes the files and releases the lock. It waits for a running WriteSnapshot. After
// ErrPoisoned it does not sync, because a second sync can report success for bytes lost by the first. The segment file
// of tidwall/wal then stays open until the process ends. A second Close has no effect.
func (l *Log) Close() error {
	l.snapshotMu.Lock()
	defer l.snapshotMu.Unlock()
	l.writeMu.Lock()
	defer l.writeMu.Unlock()
	if err := l.checkUsable(); errors.Is(err, ErrClosed) {
		return nil
	}
	l.mu.Lock()
	l.closed = true
	poisoned := l.cause != nil
	l.mu.Unlock()
	var err error
	if !poisoned {
		err = errors.Join(l.store.Close(), l.markWriter.writeSync())
	}
	if err = errors.Join(err, l.markWriter.file.Close(), unlock(l.lock)); err != nil {
		return fmt.Errorf("close log: %w", err)
	}
	return nil
}

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
		if snapshot.Damage == nil {
			s.Snapshots++
			s.SnapshotBytes += snapshot.Bytes
			s.SnapshotSequence, s.SnapshotAt = snapshot.Sequence, snapshot.finishedAt
		}
	}
	return s
}
