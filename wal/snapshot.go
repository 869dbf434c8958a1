package wal

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"
	"time"
)

const (
	snapshotMagic        = "tsSN"
	snapshotHeaderBytes  = 20
	snapshotTrailerBytes = 12
	snapshotBufferBytes  = 64 << 10
)

// SnapshotReport is one snapshot file.
type SnapshotReport struct {
	File       string
	Sequence   uint64       // sequence number of its last record
	Bytes      int64        // size of the file, 0 if it is damaged
	Damage     *DamageError // nil if the file is undamaged
	finishedAt time.Time
}

func snapshotHeader(sequence uint64) []byte {
	b := make([]byte, 0, snapshotHeaderBytes)
	b = append(b, snapshotMagic...)
	b = append(b, FormatVersion, 0, 0, 0)
	b = binary.LittleEndian.AppendUint64(b, sequence)
	return binary.LittleEndian.AppendUint32(b, checksum(b))
}

// fileWriter writes a file from its start, and checks the free space of dir before each write.
type fileWriter struct {
	file    *os.File
	disk    *disk
	dir     string
	reserve int64 // bytes that must remain free (see checkSpace)
	size    int64
}

// Write implements io.Writer.
func (w *fileWriter) Write(p []byte) (int, error) {
	if err := w.disk.checkSpace(w.dir, w.reserve, int64(len(p))); err != nil {
		return 0, err
	}
	if err := w.disk.write(w.file, p, w.size); err != nil {
		return 0, err
	}
	w.size += int64(len(p))
	return len(p), nil
}

// encodeSnapshot writes a snapshot file. fileErr is an error of out; stateErr is an error of write.
func encodeSnapshot(out *fileWriter, sequence uint64, write func(io.Writer) error) (fileErr, stateErr error) {
	buffered, sum := bufio.NewWriterSize(out, snapshotBufferBytes), crc32.New(castagnoli)
	w := io.MultiWriter(buffered, sum)
	_, _ = w.Write(snapshotHeader(sequence)) // fits the buffer
	stateErr = write(w)
	// Write returns the first error of out, which the function write may have ignored.
	if _, fileErr = buffered.Write(nil); fileErr != nil || stateErr != nil {
		return fileErr, stateErr
	}
	payload := out.size + int64(buffered.Buffered()) - snapshotHeaderBytes
	_, _ = w.Write(binary.LittleEndian.AppendUint64(nil, uint64(payload))) //nolint:gosec // G115: not negative
	_, _ = buffered.Write(binary.LittleEndian.AppendUint32(nil, sum.Sum32()))
	return buffered.Flush(), nil // also the error of the two writes
}

// verify verifies a snapshot file of size bytes. fault's offset is from the start of the file.
func (s *SnapshotReport) verify(r io.Reader, size int64) (fault *formatFault, err error) {
	if size < snapshotHeaderBytes+snapshotTrailerBytes {
		const sizeMin = snapshotHeaderBytes + snapshotTrailerBytes
		return newFault(int(size), fmt.Sprintf("at least %d bytes", sizeMin), fmt.Sprintf("the end after %d", size)), nil
	}
	head := make([]byte, snapshotHeaderBytes)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	if fault := s.checkHeader(head); fault != nil {
		return fault, nil
	}
	payload := size - snapshotHeaderBytes - snapshotTrailerBytes
	sum := crc32.New(castagnoli)
	_, _ = sum.Write(head) // a hash never fails
	if _, err := io.CopyN(sum, r, payload); err != nil {
		return nil, err
	}
	tail := make([]byte, snapshotTrailerBytes)
	if _, err := io.ReadFull(r, tail); err != nil {
		return nil, err
	}
	_, _ = sum.Write(tail[:8])
	offset := int(size) - snapshotTrailerBytes
	if stored := binary.LittleEndian.Uint32(tail[8:]); stored != sum.Sum32() {
		return newFault(offset+8, fmt.Sprintf("checksum %08x", stored), fmt.Sprintf("%08x", sum.Sum32())), nil
	}
	if stored := binary.LittleEndian.Uint64(tail); stored != uint64(payload) {
		return newFault(offset, fmt.Sprintf("a payload of %d bytes", stored), fmt.Sprint(payload)), nil
	}
	return nil, nil
}

func (s *SnapshotReport) checkHeader(head []byte) *formatFault {
	if string(head[:4]) != snapshotMagic {
		return newFault(0, fmt.Sprintf("%q", snapshotMagic), fmt.Sprintf("%q", head[:4]))
	}
	stored := binary.LittleEndian.Uint32(head[16:])
	if sum := checksum(head[:16]); sum != stored {
		return newFault(16, fmt.Sprintf("header checksum %08x", stored), fmt.Sprintf("%08x", sum))
	}
	if fault := checkVersion(head[4:8]); fault != nil {
		fault.at += 4
		return fault
	}
	if sequence := binary.LittleEndian.Uint64(head[8:]); sequence != s.Sequence {
		return newFault(8, fmt.Sprintf("record %d, as in its name", s.Sequence), fmt.Sprint(sequence))
	}
	return nil
}

// open verifies the file, sets Bytes and finishedAt, and returns a reader of its payload. Damage is a *DamageError.
func (s *SnapshotReport) open() (state io.ReadCloser, err error) {
	f, err := os.Open(s.File)
	if err != nil {
		return nil, err
	}
	var fault *formatFault
	info, err := f.Stat()
	if err == nil {
		r := bufio.NewReaderSize(f, int(min(info.Size(), snapshotBufferBytes)))
		fault, err = s.verify(r, info.Size())
	}
	if fault != nil {
		err = fault.errorIn(s.File, 0, s.Sequence, hintRestore)
	}
	if err == nil {
		_, err = f.Seek(snapshotHeaderBytes, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	s.Bytes, s.finishedAt = info.Size(), info.ModTime().UTC()
	payload := io.LimitReader(f, s.Bytes-snapshotHeaderBytes-snapshotTrailerBytes)
	return struct {
		io.Reader
		io.Closer
	}{bufio.NewReaderSize(payload, snapshotBufferBytes), f}, nil
}

// readSnapshots verifies snapshot files and returns their descriptions, including damaged ones.
func readSnapshots(files []numberedFile) ([]SnapshotReport, error) {
	var snapshots []SnapshotReport
	for _, file := range files {
		s := SnapshotReport{Sequence: file.number, File: file.path}
		state, err := s.open()
		if err == nil {
			err = state.Close()
		}
		if err != nil && !errors.As(err, &s.Damage) {
			return snapshots, err
		}
		snapshots = append(snapshots, s)
	}
	return snapshots, nil
}

// newestUndamaged returns the newest undamaged snapshot, or the zero snapshot. snapshots must be sorted by sequence.
func newestUndamaged(snapshots []SnapshotReport) SnapshotReport {
	for _, s := range slices.Backward(snapshots) {
		if s.Damage == nil {
			return s
		}
	}
	return SnapshotReport{}
}

// snapshotsKept is the number of undamaged snapshots to keep: the newest, and the one before it in case the newest gets
// damaged.
const snapshotsKept = 2

// Snapshot returns the newest undamaged snapshot: the state after record number sequence. It verifies the file again,
// and returns a *DamageError if it was damaged after Open. The caller must close r. ok is false without a snapshot;
// then the log contains all records.
func (l *Log) Snapshot() (sequence uint64, r io.ReadCloser, ok bool, err error) {
	l.mu.Lock()
	newest, closed := newestUndamaged(l.snapshots), l.closed
	l.mu.Unlock()
	switch {
	case closed:
		return 0, nil, false, ErrClosed
	case newest.Sequence == 0:
		return 0, nil, false, nil
	}
	if r, err = newest.open(); err != nil {
		return 0, nil, false, err
	}
	return newest.Sequence, r, true, nil
}

// WriteSnapshot stores the output of write as the state after record number sequence, which must be on disk. It may run
// concurrently with Append. The file gets its name only when it is complete and durable. Then only this snapshot and
// the previous one are kept. If an undamaged snapshot of that state exists, write is not called. After an error of
// write and after ErrNoSpace the log can still be used. A failed disk operation is ErrPoisoned.
func (l *Log) WriteSnapshot(sequence uint64, write func(io.Writer) error) error {
	l.snapshotMu.Lock()
	defer l.snapshotMu.Unlock()
	exists, err := l.checkSnapshot(sequence)
	if exists || err != nil {
		return err
	}
	if err := l.disk.checkSpace(l.dir, l.options.ReserveBytes, 0); err != nil {
		return err
	}
	path := snapshotPath(l.dir, sequence)
	size, stateErr, err := l.writeTemp(path+tempSuffix, sequence, write)
	if err == nil && stateErr != nil {
		if err = l.disk.remove(path + tempSuffix); err == nil {
			return fmt.Errorf("write snapshot at %d: %w", sequence, stateErr)
		}
	}
	if err == nil {
		if err := l.checkUsable(); err != nil {
			return err // an append failed meanwhile; the next Open removes the temporary file
		}
		err = l.publish(SnapshotReport{Sequence: sequence, File: path, Bytes: size, finishedAt: l.options.Clock().Round(0).UTC()})
	}
	if err != nil {
		return l.poison(fmt.Errorf("write snapshot at %d: %w", sequence, err))
	}
	return nil
}

// checkSnapshot checks that a snapshot at sequence can be written. exists reports an undamaged snapshot at sequence.
func (l *Log) checkSnapshot(sequence uint64) (exists bool, err error) {
	if err := l.checkUsable(); err != nil {
		return false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if sequence == 0 || sequence >= l.next.sequence {
		return false, fmt.Errorf("write snapshot at %d: the records on disk are 1 to %d", sequence, l.next.sequence-1)
	}
	for _, s := range l.snapshots {
		if s.Damage == nil && s.Sequence > sequence {
			return false, fmt.Errorf("write snapshot at %d: there is one at %d", sequence, s.Sequence)
		}
		exists = exists || s.Damage == nil && s.Sequence == sequence
	}
	return exists, nil
}

// writeTemp writes and syncs the snapshot file under a temporary name. stateErr is ErrNoSpace or an error of write;
// err is a failed disk operation.
func (l *Log) writeTemp(path string, sequence uint64, write func(io.Writer) error) (size int64, stateErr, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return 0, nil, err
	}
	out := &fileWriter{file: f, disk: l.disk, dir: l.dir, reserve: l.options.ReserveBytes}
	err, stateErr = encodeSnapshot(out, sequence, write)
	if errors.Is(err, ErrNoSpace) {
		err, stateErr = nil, err
	}
	if err == nil && stateErr == nil {
		err = l.disk.sync(f)
	}
	return out.size, stateErr, errors.Join(err, f.Close())
}

// publish renames the finished file and syncs the directory. Then it removes superseded snapshots.
func (l *Log) publish(s SnapshotReport) error {
	if err := l.disk.rename(s.File+tempSuffix, s.File); err != nil {
		return err
	}
	if err := l.disk.syncDir(l.dir); err != nil {
		return err
	}
	l.mu.Lock()
	snapshots := slices.DeleteFunc(slices.Clone(l.snapshots), func(old SnapshotReport) bool { return old.Sequence == s.Sequence })
	l.mu.Unlock()
	remaining, err := l.removeOld(append(snapshots, s))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.snapshots = remaining
	return err
}

// removeOld moves damaged snapshots aside. It keeps the newest snapshotsKept undamaged snapshots and removes the
// others. Both lists are sorted by sequence.
func (l *Log) removeOld(snapshots []SnapshotReport) ([]SnapshotReport, error) {
	var remaining []SnapshotReport
	for _, s := range slices.Backward(snapshots) {
		var err error
		switch {
		case s.Damage != nil:
			var name string
			if name, err = l.disk.moveAside(s.File, "damaged", l.options.Clock()); err == nil {
				l.options.Logger.Info("damaged snapshot moved aside", "saved", name)
			}
		case len(remaining) >= snapshotsKept:
			err = l.disk.remove(s.File)
		default:
			remaining = append(remaining, s)
		}
		if err != nil {
			return snapshots, err
		}
	}
	slices.Reverse(remaining)
	return remaining, l.disk.syncDir(l.dir)
}

// DropBefore removes segments (log files) that contain only records before sequence. It keeps every record after the
// second-newest snapshot, in case the newest is damaged. With fewer than two snapshots it removes nothing. Call it
// after WriteSnapshot.
//
// DropBefore does not use TruncateFront of tidwall/wal, which can lose segments in a crash. It first syncs a high-water
// mark that no longer requires the frames (batches of records) in those segments. Then it removes the segments, oldest
// first, and syncs each removal. So there is never a gap between the remaining segments.
func (l *Log) DropBefore(sequence uint64) error {
	l.writeMu.Lock()
	defer l.writeMu.Unlock()
	if err := l.checkUsable(); err != nil {
		return err
	}
	n := l.droppable(sequence)
	if n == 0 {
		return nil
	}
	l.markWriter.mark.first = l.segments[n].start.frame
	if err := l.markWriter.writeSync(); err != nil {
		return l.poison(fmt.Errorf("drop records before %d: %w", sequence, err))
	}
	for range n {
		if err := l.dropOldest(); err != nil {
			return l.poison(fmt.Errorf("drop records before %d: %w", sequence, err))
		}
	}
	return nil
}

// droppable returns the number of oldest segments that may be removed.
func (l *Log) droppable(sequence uint64) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	undamaged := 0
	for _, s := range slices.Backward(l.snapshots) {
		if s.Damage != nil {
			continue
		}
		if undamaged++; undamaged == snapshotsKept {
			sequence = min(sequence, s.Sequence+1)
		}
	}
	if undamaged < snapshotsKept {
		return 0
	}
	// The newest segment with a frame stays, because the next appended frame contains the checksum of the newest one.
	n := 0
	for n+1 < len(l.segments) && l.segments[n+1].bytes > 0 && l.segments[n+1].start.sequence <= sequence {
		n++
	}
	return n
}

func (l *Log) dropOldest() error {
	if err := l.disk.remove(l.segments[0].path); err != nil {
		return err
	}
	l.mu.Lock()
	l.segments = l.segments[1:]
	l.mu.Unlock()
	return l.disk.syncDir(l.dir)
}
