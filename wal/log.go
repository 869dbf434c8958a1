package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
)

// store is the part of the library that a log uses once it is open.
type store interface {
	Write(index uint64, data []byte) error
	Sync() error
	ClearCache() error
	Close() error
}

// Log is an open log. Append, Read, DropBefore and Close belong to one goroutine, the writer;
// every other method may be called from any, also while one of these runs.
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
	frame        []byte     // the frame being written, reused; guarded by writing

	mu        sync.Mutex // guards what follows; never held during a disk operation
	segments  []segment
	next      position
	snapshots []snapshot
	pins      []pin // what is being copied
	cause     error // the first failed disk operation
	closed    bool
	stats     Stats // what was appended since Open; sizes are not kept there
}

// Recovery says what Open found.
func (l *Log) Recovery() Recovery { return l.recovery }

// First is the sequence of the oldest record that is still in the log, 1 when there never was one.
func (l *Log) First() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.segments[0].start.sequence
}

// Last is the sequence of the newest record on disk, 0 when there never was one.
func (l *Log) Last() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next.sequence - 1
}

// Append writes the records as one batch: after a crash all of them are there or none. They are on disk
// when it returns without an error; last is the sequence of the last one. An empty batch writes nothing.
// Errors: ErrLimit and ErrNoSpace write nothing and leave the log usable; after any other error
// (ErrPoisoned with its cause, ErrClosed) it is not, and whether the batch is on disk shows at the next Open.
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

// CheckSpace is nil while a batch of records of so many bytes would be taken, else ErrNoSpace, or why that can't be told. It writes nothing,
// and may be called at any time.
func (l *Log) CheckSpace(bytes int64) error {
	return l.disk.checkSpace(l.dir, l.options.ReserveBytes, bytes+entryBytesMax-BatchBytesMax)
}

// checkBatch holds the records against the limits and returns the size of their payload.
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

// commit brings l.frame to disk, then the mark, then the state that readers see. The order is the
// promise: nothing is seen or marked that a power cut could take back.
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
	spot := l.placement()
	if spot.opensSegment || spot.fillsSegment {
		if err := l.syncNewSegment(spot, end); err != nil {
			return err
		}
	}
	if err := l.markWriter.advance(end); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if spot.opensSegment {
		l.segments = append(l.segments, segment{path: segmentPath(l.dir, l.next.frame), start: l.next})
	}
	l.segments[len(l.segments)-1].bytes = spot.segmentBytes
	l.stats.Batches++
	l.stats.Records += end.sequence - l.next.sequence
	l.stats.Bytes += spot.entryBytes
	if spot.fillsSegment {
		l.segments = append(l.segments, segment{path: segmentPath(l.dir, end.frame), start: end})
	}
	l.next = end
	return nil
}

// framePlacement is where the library put a frame.
type framePlacement struct {
	opensSegment bool  // it left the tail segment, which was already too large, for a new one
	entryBytes   int64 // bytes of the frame in its segment
	segmentBytes int64 // of the segment that got the frame
	fillsSegment bool  // it began an empty segment behind the frame
}

// placement follows the library's rule: a segment beyond its size is left before a frame is written, one
// that reaches its size right after.
func (l *Log) placement() framePlacement {
	entry := int64(len(binary.AppendUvarint(nil, uint64(len(l.frame)))) + len(l.frame))
	tail, size := l.segments[len(l.segments)-1].bytes, int64(l.options.SegmentBytes)
	s := framePlacement{opensSegment: tail > size, entryBytes: entry, segmentBytes: tail + entry}
	if s.opensSegment {
		s.segmentBytes = entry
	}
	s.fillsSegment = s.segmentBytes >= size
	return s
}

// syncNewSegment makes the name of a new segment durable and drops what the library keeps of the old one.
func (l *Log) syncNewSegment(s framePlacement, end position) error {
	newest := l.next.frame
	if s.fillsSegment {
		newest = end.frame
	}
	if _, err := os.Stat(segmentPath(l.dir, newest)); err != nil {
		return fmt.Errorf("the library began no new segment: %w", err)
	}
	if err := l.disk.syncDir(l.dir); err != nil {
		return err
	}
	return l.store.ClearCache()
}

// usable is nil while the log may write.
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

// poison keeps the first cause and returns it as later calls will.
func (l *Log) poison(cause error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause == nil {
		l.cause = cause
		l.options.Logger.Error("log stopped", "cause", cause.Error())
	}
	return fmt.Errorf("%w: %w", ErrPoisoned, l.cause)
}

// errStopScan ends a scan early without an error.
var errStopScan = errors.New("enough")

// Read calls visit for each record from the sequence on up to Last, in order, and verifies the frames
// again. The record is valid only during the call. An error of visit ends it and is returned as it is.
// Asking for records before First is an error, after Last there are none.
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
			return errStopScan // being appended right now
		}
		if f.last() < from {
			return nil
		}
		return f.records(func(seq uint64, record []byte) error {
			if seq < from {
				return nil
			}
			return visit(seq, record)
		})
	}}
	s.result.next = segments[0].start
	return s.scanUpTo(segments, end)
}

// scanUpTo scans the segments and expects them to reach the end.
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
	if s.result.next.frame < end.frame {
		tail := segments[len(segments)-1]
		return s.acknowledgedDamage(tail.path, s.result.segments[len(s.result.segments)-1].bytes,
			newFault(0, fmt.Sprintf("records up to %d", end.sequence-1), "the end of the file"))
	}
	return nil
}

// Close makes the mark durable, closes the files and lets go of the directory. It waits for a snapshot
// that is being written. After ErrPoisoned it syncs nothing any more: a second sync can report success
// for bytes that the first one lost; the library's file is then left to the end of the process.
// Closing twice is no error.
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
