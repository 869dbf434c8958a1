package wal

import (
	"archive/tar"
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	backupFormat     = 2 // version of the backup file and of the tar stream in it
	manifestName     = "backup.json"
	manifestBytesMax = 64 << 10
	backupChunkBytes = 256 << 10 // bytes of one write; Throttle is called before it
)

// BackupInfo describes a backup.
type BackupInfo struct {
	Format  int       `json:"format"`
	Program string    `json:"program,omitempty"` // version of tasard that made the backup
	TakenAt time.Time `json:"takenAt"`

	Last     uint64 `json:"-"` // sequence number of the newest record, in a segment or in the snapshot
	Snapshot uint64 `json:"-"` // number of the record after which the snapshot was made, 0 without a snapshot
}

// BackupVisitor has functions that receive the contents of a backup while it is copied or read. Record gets verified
// records. Snapshot gets a payload that is not verified yet: it is right only if the operation on the backup then
// returns without an error. Both functions may be nil. An error of one of them ends the operation.
type BackupVisitor struct {
	Snapshot func(sequence uint64, payload io.Reader) error
	Record   func(sequence uint64, record []byte) error
}

// BackupOptions configures a backup. Only Clock is required.
type BackupOptions struct {
	Clock   func() time.Time
	Program string // version of tasard, written into the backup
	// Throttle, if not nil, is called before each write of at most 256 KiB. Its error ends the backup.
	Throttle func(bytes int) error
	Visit    BackupVisitor
}

// backupFiles are the files to copy: the newest undamaged snapshot, and the segments (log files) after it, up to the
// position end.
type backupFiles struct {
	segments []segment
	end      position
	snapshot snapshot // zero if there is none
}

func selectBackupFiles(segments []segment, snapshots []snapshot, end position) *backupFiles {
	c := &backupFiles{segments: slices.Clone(segments), end: end, snapshot: newestWhole(snapshots)}
	// The newest segment with a frame (a batch of records) is always copied, because the next frame that is appended has
	// the checksum of the newest one.
	for len(c.segments) > 1 && c.segments[1].bytes > 0 && c.segments[1].start.sequence <= c.snapshot.sequence+1 {
		c.segments = c.segments[1:]
	}
	return c
}

// firstFrame returns the index of the first frame of the oldest segment.
func (c *backupFiles) firstFrame() uint64 {
	if len(c.segments) == 0 {
		return c.end.frame
	}
	return c.segments[0].start.frame
}

// mark returns the high-water mark of the backup, which says where the log must end.
func (c *backupFiles) mark() mark {
	return mark{generation: markSlots, first: c.firstFrame(), end: c.end}
}

// Backup writes the current state to w as a tar archive of a log directory: the newest snapshot and every durable
// record after it. It verifies every byte that it copies. Append, WriteSnapshot and DropBefore may be called meanwhile;
// the files of the backup stay on disk until Backup returns. Errors: *DamageError, ErrClosed, and errors of reading, of
// w and of the functions in o.
func (l *Log) Backup(w io.Writer, o BackupOptions) (BackupInfo, error) {
	c, err := l.pin()
	if err != nil {
		return BackupInfo{}, err
	}
	defer l.unpin(c)
	info, err := c.copyTo(w, &o)
	if err != nil {
		return BackupInfo{}, fmt.Errorf("back up the log: %w", err)
	}
	return info, nil
}

// pin selects the files to copy and keeps them on disk until unpin. A removal of old files that is in progress never
// removes a selected file, because it keeps everything that the selected snapshot needs.
func (l *Log) pin() (*backupFiles, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, ErrClosed
	}
	c := selectBackupFiles(l.segments, l.snapshots, l.next)
	l.pins = append(l.pins, c)
	return c, nil
}

func (l *Log) unpin(c *backupFiles) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.pins, c)
	l.pins = slices.Delete(l.pins, i, i+1)
}

// pinned reports whether a backup in progress copies the snapshot with this sequence number.
func (l *Log) pinned(sequence uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.pins, func(c *backupFiles) bool { return c.snapshot.sequence == sequence })
}

// Backup writes the same archive as Log.Backup, for a directory that no process has open. It does not change the
// directory and does not copy a torn tail (an incomplete last write). Its errors are those of Log.Backup, ErrLocked and
// *FormatError.
func Backup(dir string, w io.Writer, o BackupOptions) (info BackupInfo, err error) {
	err = withSharedLock(dir, func() error {
		x, err := examine(dir, nil)
		if err != nil {
			return err
		}
		c := selectBackupFiles(x.log.segments, x.snapshots, x.log.next)
		info, err = c.copyTo(w, &o)
		return err
	})
	if err != nil {
		return BackupInfo{}, fmt.Errorf("back up the log: %w", err)
	}
	return info, nil
}

// copyTo writes the archive: manifest, high-water mark, snapshot and segments, in this order.
func (c *backupFiles) copyTo(w io.Writer, o *BackupOptions) (BackupInfo, error) {
	info := BackupInfo{
		Format: backupFormat, Program: o.Program, TakenAt: o.Clock().UTC(), Last: c.end.sequence - 1, Snapshot: c.snapshot.sequence,
	}
	manifest, err := json.Marshal(info)
	if err != nil {
		return BackupInfo{}, err
	}
	buffered := bufio.NewWriterSize(&throttledWriter{w, o.Throttle}, backupChunkBytes)
	t := &tarWriter{tar: tar.NewWriter(buffered), modTime: info.TakenAt}
	err = errors.Join(t.file(manifestName, manifest), t.file(markName, c.mark().encodeFile()))
	if err == nil && c.snapshot.sequence > 0 {
		err = t.snapshot(&c.snapshot, o.Visit.Snapshot)
	}
	if err == nil {
		err = t.segments(c, o.Visit.Record)
	}
	if err == nil {
		err = t.tar.Close()
	}
	if err == nil {
		err = buffered.Flush()
	}
	return info, err
}

// throttledWriter splits writes into chunks and calls throttle before each chunk.
type throttledWriter struct {
	dst      io.Writer
	throttle func(int) error
}

// Write implements io.Writer.
func (w *throttledWriter) Write(p []byte) (int, error) {
	written := 0
	for chunk := range slices.Chunk(p, backupChunkBytes) {
		if w.throttle != nil {
			if err := w.throttle(len(chunk)); err != nil {
				return written, err
			}
		}
		n, err := w.dst.Write(chunk)
		written += n
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// tarWriter verifies files and writes them to a tar archive.
type tarWriter struct {
	tar     *tar.Writer
	modTime time.Time // modification time of every file
}

func (t *tarWriter) begin(name string, size int64) error {
	return t.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600, ModTime: t.modTime.Truncate(time.Second)})
}

func (t *tarWriter) file(name string, data []byte) error {
	if err := t.begin(name, int64(len(data))); err != nil {
		return err
	}
	_, err := t.tar.Write(data)
	return err
}

func (t *tarWriter) snapshot(s *snapshot, visit payloadVisitor) error {
	return withFile(s.path, fileRead, func(f *os.File) error {
		if err := t.begin(filepath.Base(s.path), s.bytes); err != nil {
			return err
		}
		body := io.TeeReader(bufio.NewReaderSize(io.LimitReader(f, s.bytes), snapshotBufferBytes), t.tar)
		_, fault, err := numberedFile{s.sequence, s.path}.verifySnapshot(body, s.bytes, visit)
		if fault != nil {
			return fault.errorIn(s.path, 0, s.sequence, hintRestore)
		}
		if err != nil {
			return fmt.Errorf("copy %s: %w", s.path, err)
		}
		return nil
	})
}

// segments writes to the archive the bytes that each segment had when the files were selected. The newest segment may
// have grown since then.
func (t *tarWriter) segments(c *backupFiles, visit func(uint64, []byte) error) error {
	s := &scanner{mark: mark{end: c.end}, positionKnown: true, visit: eachRecord(visit)}
	s.result.next = c.end
	if len(c.segments) > 0 {
		s.result.next = c.segments[0].start
	}
	for i, segment := range c.segments {
		data, err := s.readPrefix(segment)
		if err != nil {
			return err
		}
		file := numberedFile{segment.start.frame, segment.path}
		if err := s.checkSegmentName(file); err != nil {
			return err
		}
		if err := s.scanFrames(file, data, i == len(c.segments)-1); err != nil {
			return err
		}
		if err := t.file(filepath.Base(segment.path), data); err != nil {
			return err
		}
	}
	return s.checkEnd(c.end)
}

func eachRecord(visit func(uint64, []byte) error) func(location, frame) error {
	if visit == nil {
		return nil
	}
	return func(_ location, f frame) error { return f.records(visit) }
}
