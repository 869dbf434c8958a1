package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
)

// store is the part of the library that an open log uses.
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
	markWriter *markWriter
	recovery   Recovery

	writing      sync.Mutex // held by Append, DropBefore and Close
	snapshotting sync.Mutex // held by WriteSnapshot and Close; taken before writing
	frame        []byte     // being written; reused, guarded by writing

	mu        sync.Mutex // guards the fields below; never held during a disk operation
	segments  []segment
	next      position
	snapshots []snapshot
	pins      []*backupFiles // of backups in progress
	cause     error          // the first failed disk operation
	closed    bool
	stats     Stats // of appends since Open; sizes are computed
}

// Recovery reports what Open found.
func (l *Log) Recovery() Recovery { return l.recovery }

// First is the sequence of the oldest record in the log, 1 if there never was one.
func (l *Log) First() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.segments[0].start.sequence
}

// Last is the sequence of the newest record on disk, 0 if there never was one.
func (l *Log) Last() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next.sequence - 1
}

// Append writes the records as one batch and syncs it; last is the sequence of the last one. After a crash all of them
// are there or none. An empty batch writes nothing. After ErrLimit and ErrNoSpace nothing was written and the log stays
// usable. After any other error (ErrPoisoned with its cause, ErrClosed) it is unusable, and the next Open shows whether
// the batch is on disk.
func (l *Log) Append(records [][]byte) (last uint64, err error) {
	l.writing.Lock()
	defer l.writing.Unlock()
	if err := l.usable(); err != nil {
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

// CheckSpace returns ErrNoSpace if Append would refuse a batch of so many bytes, or the error of querying the disk.
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

// commit writes and syncs l.frame, then the mark, then the state that readers see: nothing is visible or marked that a
// power cut could undo.
func (l *Log) commit(end position) error {
	if err := l.store.Write(l.next.frame, l.frame); err != nil {
		return err
	}
	began := l.options.Clock()
	err := l.store.Sync()
	l.countSync(began)
	if err != nil {
		return err
	}
	p := l.placement()
	if p.opensSegment || p.fillsSegment {
		if err := l.syncNewSegment(p, end); err != nil {
			return err
		}
	}
	if err := l.markWriter.advance(end); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.opensSegment {
		l.segments = append(l.segments, segment{path: segmentPath(l.dir, l.next.frame), start: l.next})
	}
	l.segments[len(l.segments)-1].bytes = p.segmentBytes
	l.stats.Batches++
	l.stats.Records += end.sequence - l.next.sequence
	l.stats.Bytes += p.entryBytes
	if p.fillsSegment {
		l.segments = append(l.segments, segment{path: segmentPath(l.dir, end.frame), start: end})
	}
	l.next = end
	return nil
}

// framePlacement is where the library put a frame.
type framePlacement struct {
	opensSegment bool  // the frame is the first of a new segment, because the one before was too large
	entryBytes   int64 // of the frame in its segment
	segmentBytes int64 // of the segment with the frame
	fillsSegment bool  // an empty segment follows the frame
}

// placement follows the library's rule: a segment beyond its size is closed before a frame is written, one that reaches
// its size right after.
func (l *Log) placement() framePlacement {
	entry := int64(len(binary.AppendUvarint(nil, uint64(len(l.frame)))) + len(l.frame))
	tail, size := l.segments[len(l.segments)-1].bytes, int64(l.options.SegmentBytes)
	p := framePlacement{opensSegment: tail > size, entryBytes: entry, segmentBytes: tail + entry}
	if p.opensSegment {
		p.segmentBytes = entry
	}
	p.fillsSegment = p.segmentBytes >= size
	return p
}

// syncNewSegment makes the name of a new segment durable and drops the library's cache of the old one.
func (l *Log) syncNewSegment(p framePlacement, end position) error {
	newest := l.next.frame
	if p.fillsSegment {
		newest = end.frame
	}
	if _, err := os.Stat(segmentPath(l.dir, newest)); err != nil {
		return fmt.Errorf("open the next segment: %w", err)
	}
	if err := l.disk.syncDir(l.dir); err != nil {
		return err
	}
	return l.store.ClearCache()
}

// usable returns nil while the log may write.
func (l *Log) usable() error {
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

// poison stops the log. The first cause is kept and returned by later calls.
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

// Read calls visit for the records from a sequence up to Last, in order, and verifies their frames again. A record is
// valid only during the call. An error of visit ends the reading and is returned unchanged. Reading from before First
// is an error, from after Last it visits nothing.
func (l *Log) Read(from uint64, visit func(sequence uint64, record []byte) error) error {
	l.mu.Lock()
	segments, end, closed := slices.Clone(l.segments), l.next, l.closed
	l.mu.Unlock()
	if closed {
		return ErrClosed
	}
	if first := segments[0].start.sequence; from < first {
		return fmt.Errorf("read from record %d: the log begins with %d", from, first)
	}
	for len(segments) > 1 && segments[1].start.sequence <= from {
		segments = segments[1:]
	}
	s := &scanner{mark: mark{end: end}, positionKnown: true, visit: func(_ location, f frame) error {
		if f.index >= end.frame {
			return errStopScan // it is being appended
		}
		if f.last() < from {
			return nil
		}
		return f.records(func(sequence uint64, record []byte) error {
			if sequence < from {
				return nil
			}
			return visit(sequence, record)
		})
	}}
	s.result.next = segments[0].start
	return s.scanUpTo(segments, end)
}

// scanUpTo scans the segments, which must reach the end.
func (s *scanner) scanUpTo(segments []segment, end position) error {
	for i, here := range segments {
		err := s.scanSegment(numberedFile{here.start.frame, here.path}, i == len(segments)-1)
		if errors.Is(err, errStopScan) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return s.checkEnd(end)
}

// Close syncs the mark, closes the files and releases the directory. It waits for a snapshot that is being written.
// After ErrPoisoned it does not sync: a second sync can report success for bytes that the first one lost; the
// library's file then stays open until the process ends. Closing again has no effect.
func (l *Log) Close() error {
	l.snapshotting.Lock()
	defer l.snapshotting.Unlock()
	l.writing.Lock()
	defer l.writing.Unlock()
	if err := l.usable(); errors.Is(err, ErrClosed) {
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
