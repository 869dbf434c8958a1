package wal

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"
)

var errDisk = errors.New("input/output error")

// failingStore is the library with operations that fail.
type failingStore struct {
	store
	failWrite, failSync bool
	syncs               int
	closed              bool
}

func (s *failingStore) Write(index uint64, data []byte) error {
	if s.failWrite {
		return errDisk
	}
	return s.store.Write(index, data)
}

func (s *failingStore) Sync() error {
	s.syncs++
	if s.failSync {
		return errDisk
	}
	return s.store.Sync()
}

func (s *failingStore) Close() error {
	s.closed = true
	return s.store.Close()
}

// TestW6_FirstFailurePoisons makes each disk operation fail once: nothing is written afterwards, and acknowledged
// records stay.
func TestW6_FirstFailurePoisons(t *testing.T) {
	for name, c := range map[string]struct {
		plant func(l *Log, s *failingStore)
		call  func(l *Log) error
	}{
		"write":           {func(_ *Log, s *failingStore) { s.failWrite = true }, appendOne},
		"sync":            {func(_ *Log, s *failingStore) { s.failSync = true }, appendOne},
		"mark":            {func(l *Log, _ *failingStore) { l.disk.write = failWrite }, appendOne},
		"directory":       {func(l *Log, _ *failingStore) { l.disk.syncDir = failPath }, appendUntilRoll},
		"snapshot write":  {func(l *Log, _ *failingStore) { l.disk.write = failWrite }, snapshotNow},
		"snapshot sync":   {func(l *Log, _ *failingStore) { l.disk.sync = failFile }, snapshotNow},
		"snapshot rename": {func(l *Log, _ *failingStore) { l.disk.rename = failTwo }, snapshotNow},
		"snapshot name":   {func(l *Log, _ *failingStore) { l.disk.syncDir = failPath }, snapshotNow},
		"snapshot retire": {func(l *Log, _ *failingStore) { l.disk.remove = failPath }, snapshotNow},
		"drop mark":       {func(l *Log, _ *failingStore) { l.disk.sync = failFile }, dropNow},
		"drop remove":     {func(l *Log, _ *failingStore) { l.disk.remove = failPath }, dropNow},
		"drop name":       {func(l *Log, _ *failingStore) { l.disk.syncDir = failPath }, dropNow},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(scratch(t), "log")
			l := faultyLog(t, dir)
			s := &failingStore{store: l.store}
			l.store = s
			acked := l.Last()
			c.plant(l, s)
			err := c.call(l)
			if !errors.Is(err, ErrPoisoned) {
				t.Fatalf("got %v", err)
			}
			if !errors.Is(err, errDisk) {
				t.Errorf("the cause is not in %v", err)
			}
			s.failWrite, s.failSync = false, false
			*l.disk = *quickDisk()
			staysPoisoned(t, l, s)
			survivor := diskImage{files: readFiles(t, dir), acked: acked}
			next := filepath.Join(scratch(t), "log")
			writeFiles(t, next, survivor.files)
			if err := survivor.checkRecovery(next); err != nil {
				t.Error(err)
			}
		})
	}
}

func staysPoisoned(t *testing.T, l *Log, s *failingStore) {
	t.Helper()
	before, syncs := hashDir(t, l.dir), s.syncs
	for what, err := range map[string]error{"append": appendOne(l), "snapshot": snapshotNow(l), "drop": dropNow(l)} {
		if !errors.Is(err, ErrPoisoned) {
			t.Errorf("%s afterwards: %v", what, err)
		}
	}
	if err := l.Read(l.First(), func(uint64, []byte) error { return nil }); err != nil {
		t.Errorf("read afterwards: %v", err)
	}
	must(t, l.Close())
	if s.syncs != syncs || s.closed || hashDir(t, l.dir) != before {
		t.Errorf("%d syncs more, library closed: %v", s.syncs-syncs, s.closed)
	}
}

// faultyLog is a log with segments to drop and a snapshot to retire.
func faultyLog(t *testing.T, dir string) *Log {
	t.Helper()
	o := testOptions()
	o.disk = quickDisk()
	l := mustOpen(t, dir, o)
	for range 2 {
		mustAppend(t, l, 30)
		mustSnapshot(t, l, l.Last())
	}
	mustAppend(t, l, 4)
	return l
}

func appendOne(l *Log) error {
	_, err := l.Append(batchFrom(l.Last()+1, 1))
	return err
}

func appendUntilRoll(l *Log) error {
	for range 100 {
		if err := appendOne(l); err != nil {
			return err
		}
	}
	return errors.New("no segment was rolled")
}

func snapshotNow(l *Log) error {
	return l.WriteSnapshot(l.Last(), stateAt(l.Last()))
}

func dropNow(l *Log) error { return l.DropBefore(l.Last()) }

func failWrite(*os.File, []byte, int64) error { return errDisk }
func failFile(*os.File) error                 { return errDisk }
func failPath(string) error                   { return errDisk }
func failTwo(string, string) error            { return errDisk }

// TestW6_OpenReadsTheDisk opens a log whose last sync failed. The page cache has the frame, the disk does not, and
// syncs succeed. Open must drop the page cache and read the disk; if it cannot, it fails.
func TestW6_OpenReadsTheDisk(t *testing.T) {
	h := writeLog(t, 20)
	whole, dir := len(h.batches), filepath.Join(scratch(t), "log")
	name := lastWithFrames(h.files)
	shown := maps.Clone(h.files)
	shown[markName] = h.marks[whole-2] // the last append was not acknowledged
	writeFiles(t, dir, shown)
	synced := map[string]bool{}
	o := testOptions()
	o.disk.sync = func(f *os.File) error { synced[filepath.Base(f.Name())] = true; return nil }
	o.disk.dropPageCache = func(f *os.File) error {
		base := filepath.Base(f.Name())
		if !synced[base] {
			t.Errorf("%s is forgotten before it is synced: that loses what could be written", base)
		}
		if base == name {
			must(t, os.Truncate(f.Name(), int64(len(shown[name])-3)))
		}
		return nil
	}
	l := mustOpen(t, dir, o)
	if r := l.Recovery(); l.Last() != uint64(h.batches[whole-2]) || r.TornBytes == 0 {
		t.Errorf("the log ends with record %d, torn %d; want %d", l.Last(), r.TornBytes, h.batches[whole-2])
	}
	mustClose(t, l)
	for what, plant := range map[string]func(*disk){
		"sync":   func(d *disk) { d.sync = failFile },
		"forget": func(d *disk) { d.dropPageCache = failFile },
	} {
		writeFiles(t, dir, shown)
		o := testOptions()
		plant(o.disk)
		if _, err := Open(dir, o); !errors.Is(err, errDisk) {
			t.Errorf("%s fails: %v", what, err)
		}
	}
}

func TestW7_NoSpaceDoesNotPoison(t *testing.T) {
	dir := filepath.Join(scratch(t), "log")
	o := testOptions()
	o.ReserveBytes = 1 << 20
	free := int64(10 << 20)
	o.disk.freeBytes = func(string) (int64, error) { return free, nil }
	l := mustOpen(t, dir, o)
	defer mustClose(t, l)
	mustAppend(t, l, 5)
	before := hashDir(t, dir)
	free = 1<<20 - 1
	if err := appendOne(l); !errors.Is(err, ErrNoSpace) || errors.Is(err, ErrPoisoned) {
		t.Errorf("append: %v", err)
	}
	if err := snapshotNow(l); !errors.Is(err, ErrNoSpace) || errors.Is(err, ErrPoisoned) {
		t.Errorf("snapshot: %v", err)
	}
	free = 1<<20 + 10 // enough to begin a snapshot, not to write it
	if err := snapshotNow(l); !errors.Is(err, ErrNoSpace) || errors.Is(err, ErrPoisoned) {
		t.Errorf("snapshot in the middle: %v", err)
	}
	if hashDir(t, dir) != before {
		t.Error("something was written")
	}
	free = 10 << 20
	mustAppend(t, l, 5)
	mustSnapshot(t, l, l.Last())
	wantWhole(t, l)
}

func TestReserveOptions(t *testing.T) {
	real, err := FreeSpace(t.TempDir())
	if err != nil || real <= 0 {
		t.Fatalf("%d, %v", real, err)
	}
	for reserve, full := range map[int64]bool{-1: false, 0: true, 1: true} {
		o := testOptions()
		o.ReserveBytes = reserve
		o.disk.freeBytes = func(string) (int64, error) { return 0, nil }
		l := mustOpen(t, scratch(t), o)
		if err := appendOne(l); errors.Is(err, ErrNoSpace) != full {
			t.Errorf("reserve %d: %v", reserve, err)
		}
		mustClose(t, l)
	}
	o := testOptions()
	o.ReserveBytes = 1
	o.disk.freeBytes = func(string) (int64, error) { return 0, fmt.Errorf("no answer: %w", errDisk) }
	l := mustOpen(t, scratch(t), o)
	defer mustClose(t, l)
	if err := appendOne(l); !errors.Is(err, errDisk) || errors.Is(err, ErrPoisoned) {
		t.Errorf("unknown free space: %v", err)
	}
}
