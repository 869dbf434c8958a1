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
	backupFormat     = 2 // of the file and of what is in it
	manifestName     = "backup.json"
	manifestBytesMax = 64 << 10
	backupChunkBytes = 256 << 10 // what is copied between two calls of Pace
)

// BackupInfo says what a backup has: the first three fields stand in it, the others are counted when it is written or read.
type BackupInfo struct {
	Format  int       `json:"format"`
	Program string    `json:"program,omitempty"` // version of the one that made it
	TakenAt time.Time `json:"takenAt"`

	First         uint64 `json:"-"` // sequence of the oldest record in it
	Last          uint64 `json:"-"` // of the newest one that it knows: nothing later is in it
	Records       uint64 `json:"-"` // in its segments
	Segments      int    `json:"-"`
	LogBytes      int64  `json:"-"`
	Snapshot      uint64 `json:"-"` // sequence of the snapshot in it, 0 without one
	SnapshotBytes int64  `json:"-"`
}

// count says what there was.
func (i *BackupInfo) count(x *scanResult, snapshot uint64, snapshotBytes int64) {
	i.First, i.Last, i.Records, i.Segments, i.LogBytes = x.first(), x.last(), x.records, len(x.segments), x.bytes
	i.Snapshot, i.SnapshotBytes = snapshot, snapshotBytes
}

// BackupVisitor looks at what a backup has while it passes. What it gets of a snapshot is not yet verified to its end, a record
// is; nothing of it counts before the whole call came back without an error. Both may be nil; an error of theirs ends the call.
type BackupVisitor struct {
	Snapshot func(sequence uint64, payload io.Reader) error
	Record   func(sequence uint64, record []byte) error
}

// BackupOptions says how a backup is taken. Only Clock is required.
type BackupOptions struct {
	Clock   func() time.Time
	Program string // goes into the backup
	// Throttle is called before every piece of at most 256 KiB is written, so that a copy leaves time to others. Its error ends the
	// copy.
	Throttle func(bytes int) error
	Visit    BackupVisitor
}

// backupFiles are the files of one moment: a snapshot, if there is one, and all that follows it up to the end.
type backupFiles struct {
	segments []segment
	end      position
	snapshot *snapshot
}

// selectBackupFiles chooses the newest whole snapshot, and the segments that hold what follows it.
func selectBackupFiles(segments []segment, snapshots []snapshot, end position) backupFiles {
	c := backupFiles{segments: slices.Clone(segments), end: end}
	for _, s := range slices.Backward(snapshots) {
		if s.damage == nil {
			c.snapshot = &s
			break
		}
	}
	// As in droppable: the last segment with a frame stays.
	for len(c.segments) > 1 && c.segments[1].bytes > 0 && c.segments[1].start.sequence <= c.snapshotSequence()+1 {
		c.segments = c.segments[1:]
	}
	return c
}

// pin is what of the log must stay while something is copied. The oldest segment may end with the snapshot: it was the last one with a
// frame when that was chosen.
type pin struct {
	snapshot uint64 // sequence, 0 without one
	first    uint64 // frame with which the oldest segment begins
}

func (c *backupFiles) pin() pin {
	p := pin{c.snapshotSequence(), c.end.frame}
	if len(c.segments) > 0 {
		p.first = c.segments[0].start.frame
	}
	return p
}

// snapshotSequence is the sequence of the snapshot, 0 without one.
func (c *backupFiles) snapshotSequence() uint64 {
	if c.snapshot == nil {
		return 0
	}
	return c.snapshot.sequence
}

// mark is the one of the copy: it ends exactly there.
func (c *backupFiles) mark() mark {
	m := mark{generation: markSlots, first: c.end.frame, end: c.end}
	if len(c.segments) > 0 {
		m.first = c.segments[0].start.frame
	}
	return m
}

// Backup writes the state of this moment to w: the newest snapshot and every record after it that is durable now, as a tar archive
// of a whole directory. Every byte is verified on its way. It may run while everything else goes on, and lets appends, snapshots
// and DropBefore pass; what it still has to read stays on the disk until it returns. Errors: *DamageError, ErrClosed, those
// of reading, of w and of the options' functions.
func (l *Log) Backup(w io.Writer, o BackupOptions) (BackupInfo, error) {
	c, err := l.pin()
	if err != nil {
		return BackupInfo{}, err
	}
	defer l.unpin(&c)
	info, err := c.copyTo(w, &o)
	if err != nil {
		return BackupInfo{}, fmt.Errorf("back up the log: %w", err)
	}
	return info, nil
}

// pin chooses what is copied and keeps it on the disk. A removal that is under way took its choice when there were no newer
// snapshots than now, so it leaves what this one needs.
func (l *Log) pin() (backupFiles, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return backupFiles{}, ErrClosed
	}
	c := selectBackupFiles(l.segments, l.snapshots, l.next)
	l.pins = append(l.pins, c.pin())
	return c, nil
}

func (l *Log) unpin(c *backupFiles) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.Index(l.pins, c.pin())
	l.pins = slices.Delete(l.pins, at, at+1)
}

// pinned reports whether a snapshot is being copied.
func (l *Log) pinned(sequence uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.pins, func(p pin) bool { return p.snapshot == sequence })
}

// Backup is Log.Backup of a directory on which no process works; it changes nothing there. A torn tail is left out. Errors beside
// those of Log.Backup: ErrLocked, *FormatError.
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

// copyTo writes the archive: what it has, the mark, the snapshot, the segments.
func (c *backupFiles) copyTo(w io.Writer, o *BackupOptions) (BackupInfo, error) {
	info := BackupInfo{Format: backupFormat, Program: o.Program, TakenAt: o.Clock().UTC()}
	manifest, err := json.Marshal(info)
	if err != nil {
		return BackupInfo{}, err
	}
	paced := bufio.NewWriterSize(&throttledWriter{w, o.Throttle}, backupChunkBytes)
	t := &tarWriter{to: tar.NewWriter(paced), at: info.TakenAt}
	err = errors.Join(t.file(manifestName, manifest), t.file(markName, c.mark().encodeFile()))
	if err == nil && c.snapshot != nil {
		err = t.snapshot(c.snapshot, o.Visit.Snapshot)
	}
	if err == nil {
		err = t.segments(c, o.Visit.Record, &info)
	}
	if err == nil {
		err = t.to.Close()
	}
	if err == nil {
		err = paced.Flush()
	}
	return info, err
}

// writeFile is both slots of the mark, the second of which counts.
func (m mark) encodeFile() []byte {
	older := m
	older.generation--
	slots := [markSlots][]byte{}
	slots[m.generation%markSlots], slots[older.generation%markSlots] = m.encode(), older.encode()
	return slices.Concat(slots[:]...)
}

// throttledWriter writes piece by piece.
type throttledWriter struct {
	to       io.Writer
	throttle func(int) error
}

// Write is io.Writer.
func (w *throttledWriter) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 {
		piece := p[:min(len(p), backupChunkBytes)]
		if w.throttle != nil {
			if err := w.throttle(len(piece)); err != nil {
				return written, err
			}
		}
		n, err := w.to.Write(piece)
		written += n
		if err != nil {
			return written, err
		}
		p = p[n:]
	}
	return written, nil
}

// tarWriter writes the files of a directory, each verified.
type tarWriter struct {
	to *tar.Writer
	at time.Time
}

func (t *tarWriter) begin(name string, size int64) error {
	return t.to.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600, ModTime: t.at.Truncate(time.Second)})
}

func (t *tarWriter) file(name string, data []byte) error {
	if err := t.begin(name, int64(len(data))); err != nil {
		return err
	}
	_, err := t.to.Write(data)
	return err
}

func (t *tarWriter) snapshot(s *snapshot, visit func(uint64, io.Reader) error) (err error) {
	f, err := os.Open(s.path)
	if err != nil {
		return fmt.Errorf("copy snapshot: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := t.begin(filepath.Base(s.path), s.bytes); err != nil {
		return err
	}
	body := io.TeeReader(bufio.NewReaderSize(io.LimitReader(f, s.bytes), snapshotBufferBytes), t.to)
	file := numberedFile{s.sequence, s.path}
	_, bad, err := file.verifySnapshot(body, s.bytes, visit)
	if bad != nil {
		return file.snapshotDamage(bad)
	}
	if err != nil {
		return fmt.Errorf("copy snapshot %s: %w", s.path, err)
	}
	return nil
}

// segments copies each segment up to its last frame of the moment: the newest may have grown meanwhile.
func (t *tarWriter) segments(c *backupFiles, visit func(uint64, []byte) error, info *BackupInfo) error {
	s := &scanner{mark: mark{end: c.end}, positionKnown: true, visit: eachRecord(visit)}
	s.result.next = c.end
	if len(c.segments) > 0 {
		s.result.next = c.segments[0].start
	}
	for i, here := range c.segments {
		data, err := s.readPrefix(here)
		if err != nil {
			return err
		}
		file := numberedFile{here.start.frame, here.path}
		if err := s.checkSegmentName(file); err != nil {
			return err
		}
		if err := s.scanFrames(file, data, i == len(c.segments)-1); err != nil {
			return err
		}
		if err := t.file(filepath.Base(here.path), data); err != nil {
			return err
		}
	}
	var snapshotBytes int64
	if c.snapshot != nil {
		snapshotBytes = c.snapshot.bytes
	}
	info.count(&s.result, c.snapshotSequence(), snapshotBytes)
	if s.result.next != c.end {
		tail := s.result.segments[len(s.result.segments)-1]
		return s.acknowledgedDamage(tail.path, tail.bytes, newFault(0, fmt.Sprintf("records up to %d", c.end.sequence-1), fmt.Sprintf("the end at record %d", s.result.last())))
	}
	return nil
}

func eachRecord(visit func(uint64, []byte) error) func(location, frame) error {
	if visit == nil {
		return nil
	}
	return func(_ location, f frame) error { return f.records(visit) }
}

// readPrefix is read of the bytes that a segment is known to have.
func (s *scanner) readPrefix(here segment) (data []byte, err error) {
	f, err := os.Open(here.path)
	if err != nil {
		return nil, fmt.Errorf("copy segment: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	data = s.buffered(int(here.bytes))
	n, err := io.ReadFull(f, data)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, s.acknowledgedDamage(here.path, int64(n), newFault(0, fmt.Sprintf("a segment of %d bytes", here.bytes), fmt.Sprintf("the end after %d", n)))
	case err != nil:
		return nil, fmt.Errorf("copy segment %s: %w", here.path, err)
	}
	return data, nil
}
