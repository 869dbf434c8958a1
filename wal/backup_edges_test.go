package wal

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func TestBackup_CopiesNoMoreThanItNeeds(t *testing.T) {
	at := func(frame, sequence uint64, bytes int64) segment {
		return segment{start: position{frame: frame, sequence: sequence}, bytes: bytes}
	}
	full := []segment{at(1, 1, 9), at(4, 11, 9), at(7, 21, 9)}
	grown := append(slices.Clone(full), at(9, 31, 0))
	for _, c := range []struct {
		name      string
		segments  []segment
		snapshots []snapshot
		base      uint64
		first     uint64
	}{
		{"no snapshot", full, nil, 0, 1},
		{"the last of a segment's records is not in it", full, []snapshot{{sequence: 9}}, 9, 1},
		{"the whole first segment is in it", full, []snapshot{{sequence: 10}}, 10, 11},
		{"and the first record of the next one", full, []snapshot{{sequence: 11}}, 11, 11},
		{"everything is in it", full, []snapshot{{sequence: 30}}, 30, 21},
		{"the newest one counts", full, []snapshot{{sequence: 10}, {sequence: 20}}, 20, 21},
		{"the newest one is damaged", full, []snapshot{{sequence: 10}, {sequence: 20, damage: &DamageError{}}}, 10, 11},
		{"the last segment is empty", grown, []snapshot{{sequence: 30}}, 30, 21},
		{"there is only one segment", full[:1], []snapshot{{sequence: 30}}, 30, 1},
	} {
		found := selectBackupFiles(c.segments, c.snapshots, position{frame: 9, sequence: 31})
		if first := found.segments[0].start.sequence; found.snapshot.sequence != c.base || first != c.first {
			t.Errorf("%s: a snapshot at %d, records from %d; want %d, %d", c.name, found.snapshot.sequence, first, c.base, c.first)
		}
	}
}

// snapshotAt is the snapshot of another log with that many records.
func snapshotAt(t *testing.T, sequence uint64) snapshot {
	t.Helper()
	l := mustOpen(t, filepath.Join(scratch(t), "other"), testOptions())
	_, err := l.Append(batchFrom(1, int(sequence)))
	must(t, err)
	mustSnapshot(t, l, sequence)
	mustClose(t, l)
	return l.snapshots[len(l.snapshots)-1]
}

// TestBackup_SnapshotAndRecordsMeet refuses a backup with a gap between its snapshot and its records.
func TestBackup_SnapshotAndRecordsMeet(t *testing.T) {
	l := sampleLog(t, filepath.Join(scratch(t), "log"))
	c := selectBackupFiles(l.segments, l.snapshots, l.next)
	first, last := c.segments[0].start.sequence, l.Last()
	for base, meets := range map[uint64]bool{0: false, first - 2: false, first - 1: true, first: true, last: true, last + 1: false} {
		if c.snapshot = (snapshot{}); base > 0 {
			c.snapshot = snapshotAt(t, base)
		}
		var stream bytes.Buffer
		_, err := c.copyTo(&stream, &BackupOptions{Clock: testClock})
		must(t, err)
		_, err = PackBackup(&stream, io.Discard, BackupVisitor{})
		var refused *DamageError
		if errors.As(err, &refused) == meets || !meets && (refused.Offset != 0 || !strings.HasPrefix(refused.Expected, "records from ")) {
			t.Errorf("a snapshot at %d, records from %d to %d: %v", base, first, last, err)
		}
	}
	mustClose(t, l)
}

func TestBackup_FilesThatChange(t *testing.T) {
	grown := func() *Log { return sampleLog(t, filepath.Join(scratch(t), "log")) }
	for name, change := range map[string]struct {
		do   func(l *Log) error
		want string
	}{
		"an older snapshot": {func(l *Log) error {
			older, err := os.ReadFile(l.snapshots[0].path)
			return errors.Join(err, os.WriteFile(l.snapshots[1].path, older, 0o600))
		}, "at offset 8, record 175: expected record 175, as in its name, found 115"},
		"no snapshot": {func(l *Log) error { return os.Remove(l.snapshots[1].path) }, "log: open "},
		"no segment":  {func(l *Log) error { return os.Remove(l.segments[len(l.segments)-1].path) }, "log: open "},
		"half a segment": {func(l *Log) error {
			return os.Truncate(l.segments[len(l.segments)-1].path, 7)
		}, "at offset 7, record 178: expected a segment of 102 bytes, found the end after 7"},
		"a directory": {func(l *Log) error {
			path := l.segments[len(l.segments)-1].path
			return errors.Join(os.Remove(path), os.Mkdir(path, 0o700))
		}, "log: read "},
	} {
		l := grown()
		must(t, change.do(l))
		info, err := l.Backup(io.Discard, BackupOptions{Clock: testClock})
		if err == nil || !strings.Contains(err.Error(), change.want) || info != (BackupInfo{}) {
			t.Errorf("%s: %v, want %q", name, err, change.want)
		}
		mustClose(t, l)
	}
	l := grown()
	c := selectBackupFiles(l.segments, l.snapshots, l.next)
	c.end.sequence, c.end.frame = c.end.sequence+1, c.end.frame+1
	_, err := c.copyTo(io.Discard, &BackupOptions{Clock: testClock})
	var damage *DamageError
	if !errors.As(err, &damage) || damage.Offset != c.segments[len(c.segments)-1].bytes || damage.Expected != "records up to 181" ||
		damage.Found != "the end at record 180" || damage.Hint != hintAcknowledged {
		t.Errorf("a segment that ends early: %v", err)
	}
	mustClose(t, l)
}

// TestBackup_Chunks checks that each chunk is announced and within the limit, and that none is lost.
func TestBackup_Chunks(t *testing.T) {
	for _, size := range []int{0, 1, backupChunkBytes, backupChunkBytes + 1, 2*backupChunkBytes + 1} {
		var out bytes.Buffer
		var sizes []int
		w := &throttledWriter{&out, func(n int) error { sizes = append(sizes, n); return nil }}
		n, err := w.Write(make([]byte, size))
		sum := 0
		for _, piece := range sizes {
			if sum += piece; piece < 1 || piece > backupChunkBytes {
				t.Errorf("%d bytes: a piece of %d", size, piece)
			}
		}
		if err != nil || n != size || out.Len() != size || sum != size {
			t.Errorf("%d bytes: %d taken, %d written, %d announced: %v", size, n, out.Len(), sum, err)
		}
	}
	w := &throttledWriter{dst: &failingIO{left: 2}}
	if n, err := w.Write(make([]byte, 3*backupChunkBytes)); n != backupChunkBytes || !errors.Is(err, errPlanted) {
		t.Errorf("the second piece fails: %d taken, %v", n, err)
	}
}

// TestBackup_FileIsAStream tests writer and reader of backup files with many chunks.
func TestBackup_FileIsAStream(t *testing.T) {
	content := make([]byte, 5*archiveWindowBytes+12345)
	chance := rand.New(rand.NewPCG(3, 4))
	for i := range content {
		content[i] = byte(chance.IntN(256))
	}
	var file bytes.Buffer
	w, err := NewBackupFile(&file)
	must(t, err)
	if file.Len() > 0 {
		t.Errorf("%d bytes are written before the first piece", file.Len())
	}
	n, err := io.Copy(w, io.MultiReader(bytes.NewReader(content[:777]), bytes.NewReader(content[777:])))
	if err = errors.Join(err, w.Close()); err != nil || n != int64(len(content)) {
		t.Errorf("%d of %d bytes taken: %v", n, len(content), err)
	}
	r, err := newArchiveReader(bytes.NewReader(file.Bytes()), "b")
	must(t, err)
	must(t, iotest.TestReader(r, content))
	if n, err := r.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("behind the end: %d bytes, %v", n, err)
	}
	r.close()
}

// reportHeaders records the errors for changed headers and trailers of a backup file.
func (s *goldenReport) reportHeaders(t *testing.T) {
	t.Helper()
	var file bytes.Buffer
	w, err := NewBackupFile(&file)
	must(t, errors.Join(err, errorOf(w.Write([]byte("content"))), w.Close()))
	whole := file.Bytes()
	end := len(whole) - archiveTrailerBytes
	changed := func(at int, value byte) []byte {
		b := bytes.Clone(whole)
		b[at] = value
		return b
	}
	for _, c := range []struct {
		name string
		data []byte
	}{
		{"nothing", nil}, {"half a head", whole[:9]}, {"only a head", whole[:archiveHeaderBytes]}, {"another program's", bytes.Repeat([]byte("no backup"), 20)},
		{"another magic", changed(8, 'T')}, {"version 1", changed(archiveVersionOffset, 1)}, {"version 3", changed(archiveVersionOffset, 3)},
		{"something behind the version", changed(13, 1)}, {"nothing that zstd knows", changed(archiveHeaderBytes, 0)}, {"no end", whole[:end]},
		{"another sum", changed(len(whole)-1, whole[len(whole)-1]^1)}, {"a byte behind it", append(bytes.Clone(whole), 0)},
	} {
		r, err := newArchiveReader(bytes.NewReader(c.data), "b")
		if err == nil {
			_, err = io.ReadAll(r)
			r.close()
		}
		s.line("file, %s: %v", c.name, err)
	}
}

// TestRestore_FileAppearsBeforeLock lets a file appear in the directory before it is locked.
func TestRestore_FileAppearsBeforeLock(t *testing.T) {
	backup, _ := sampleBackup(t)
	dir := filepath.Join(scratch(t), "r")
	theirs := filepath.Join(dir, "theirs")
	o := testOptions()
	o.disk.syncDir = func(string) error { return os.WriteFile(theirs, nil, 0o600) } // between check and lock
	_, err := RestoreBackup(bytes.NewReader(backup), "b", dir, o, BackupVisitor{})
	if _, stays := os.Stat(theirs); !errors.Is(err, ErrNotEmpty) || stays != nil {
		t.Errorf("%v; theirs: %v", err, stays)
	}
	held, err := lock(dir)
	if err != nil {
		t.Fatalf("it is still held: %v", err)
	}
	must(t, unlock(held))
}

// TestRestore_LeavesNothingOpen checks that all files are closed.
func TestRestore_LeavesNothingOpen(t *testing.T) {
	backup, _ := sampleBackup(t)
	dir := filepath.Join(scratch(t), "r")
	_, err := RestoreBackup(bytes.NewReader(backup), "b", dir, testOptions(), BackupVisitor{})
	must(t, err)
	if open := openFilesBelow(t, dir); len(open) > 0 {
		t.Errorf("still open: %q", open)
	}
	held, err := lock(dir)
	must(t, err)
	if open := openFilesBelow(t, dir); len(open) != 1 {
		t.Errorf("control: one file is open, found %q", open)
	}
	must(t, unlock(held))
}

// openFilesBelow is the files below dir that this process has open.
func openFilesBelow(t *testing.T, dir string) []string {
	t.Helper()
	const descriptors = "/proc/self/fd"
	entries, err := os.ReadDir(descriptors)
	if err != nil {
		t.Skipf("the system lists no open files: %v", err)
	}
	var found []string
	for _, e := range entries {
		path, err := os.Readlink(filepath.Join(descriptors, e.Name()))
		if err == nil && strings.HasPrefix(path, dir+string(filepath.Separator)) {
			found = append(found, path)
		}
	}
	return found
}

// TestBackup_NeedsADate refuses a time that JSON cannot hold.
func TestBackup_NeedsADate(t *testing.T) {
	l := mustOpen(t, filepath.Join(scratch(t), "log"), testOptions())
	late := func() time.Time { return time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC) }
	if info, err := l.Backup(io.Discard, BackupOptions{Clock: late}); err == nil || info != (BackupInfo{}) {
		t.Errorf("%+v, %v", info, err)
	}
	mustClose(t, l)
}
