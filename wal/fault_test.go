package wal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
		// No snapshot is published after a failed append, and a second failure does not replace the cause.
		"append meanwhile":      {func(_ *Log, s *failingStore) { s.failSync = true }, snapshotMeanwhile(nil)},
		"append, then snapshot": {func(_ *Log, s *failingStore) { s.failSync = true }, snapshotMeanwhile(errors.New("later"))},
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

// snapshotMeanwhile writes a snapshot while an append fails. The sync of the snapshot returns err.
func snapshotMeanwhile(err error) func(*Log) error {
	return func(l *Log) error {
		return l.WriteSnapshot(l.Last(), func(w io.Writer) error {
			_ = appendOne(l)
			l.disk.sync = func(*os.File) error { return err }
			return stateAt(l.Last())(w)
		})
	}
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

// eachFailure makes each operation of a kind fail in turn. do gets options with the failing disk; check gets its
// error. The result is the number of operations.
func eachFailure(t *testing.T, kind string, do func(o Options) error, check func(n int, err error)) int {
	t.Helper()
	for n := 1; ; n++ {
		done, o := 0, testOptions()
		o.disk = hookedDisk(func(did, path string) error {
			if did != kind {
				return nil
			}
			if done++; done == n {
				return &os.PathError{Op: kind, Path: path, Err: errDisk}
			}
			return nil
		})
		err := do(o)
		if done < n {
			if err != nil {
				t.Fatalf("it fails by itself: %v", err)
			}
			return n - 1
		}
		check(n, err)
	}
}

// TestW6_EachFailureIsReported makes each single operation of Open, Repair, WriteSnapshot and DropBefore fail.
// Each is an error with its place, and a later Open succeeds.
func TestW6_EachFailureIsReported(t *testing.T) {
	report := &goldenReport{dir: filepath.Join(scratch(t), "log")}
	made := filepath.Join(scratch(t), "log")
	older, newer := compacted(t, made)
	all := readFiles(t, made)
	names := segmentNames(all)
	one := filepath.Base(snapshotPath("", older))
	torn := maps.Clone(all)
	last := names[len(names)-1]
	torn[last] = append(bytes.Clone(torn[last]), entry(position{frame: 84, sequence: 165}, []byte("x"))[:20]...)
	torn[one+tempSuffix] = nil
	damaged := maps.Clone(all)
	damaged[names[2]] = bytes.Clone(damaged[names[2]])
	damaged[names[2]][60] ^= 1
	damaged[names[1]+".END"] = nil
	damaged[one] = nil
	for _, c := range []struct {
		name string
		from map[string][]byte
		do   func(o Options) error
	}{
		{"open a torn log", torn, func(o Options) error { return opensAndCloses(report.dir, o) }},
		{"repair", damaged, func(o Options) error { _, err := Repair(report.dir, o); return err }},
		{"repair without snapshots", withoutKey(withoutKey(all, one), filepath.Base(snapshotPath("", newer))),
			func(o Options) error { _, err := Repair(report.dir, o); return err }},
		{"write", all, func(o Options) error { return writes(report.dir, o) }},
		{"begin", map[string][]byte{}, func(o Options) error { return writes(report.dir, o) }},
	} {
		report.reportFailures(t, c.name, c.from, c.do)
	}
	report.golden(t, "failures.txt")
}

// reportFailures repeats do until no operation is left that can fail.
func (s *goldenReport) reportFailures(t *testing.T, name string, from map[string][]byte, do func(Options) error) {
	t.Helper()
	fired := 0
	for _, kind := range []string{"sync", "syncDir", "rename", "remove", "truncate", "write", "free", "forget"} {
		count := eachFailure(t, kind, func(o Options) error {
			writeFiles(t, s.dir, from)
			o.ReserveBytes = 1
			return do(o)
		}, func(n int, err error) {
			if err == nil {
				t.Errorf("%s: %s number %d failed, and no error says so", name, kind, n)
			}
			s.line("%s: %s %d: %v", name, kind, n, err)
			if _, err := Repair(s.dir, testOptions()); err != nil {
				t.Errorf("%s: after %s number %d: %v", name, kind, n, err)
			}
			must(t, opensAndCloses(s.dir, testOptions()))
		})
		s.line("%s: %d times %s", name, count, kind)
		fired += count
	}
	if fired == 0 {
		t.Errorf("%s: nothing failed", name)
	}
}

func opensAndCloses(dir string, o Options) error {
	l, err := Open(dir, o)
	if err != nil {
		return err
	}
	return l.Close()
}

// writes changes an open log in every way.
func writes(dir string, o Options) error {
	l, err := Open(dir, o)
	if err != nil {
		return err
	}
	var all []error
	for range 12 {
		_, err := l.Append(batchFrom(l.Last()+1, 2))
		all = append(all, err)
	}
	all = append(all, l.WriteSnapshot(l.Last(), stateAt(l.Last())))
	_, err = l.Append(batchFrom(l.Last()+1, 2))
	all = append(all, err, l.WriteSnapshot(l.Last(), stateAt(l.Last())), l.DropBefore(l.Last()))
	all = append(all, l.Close())
	first := slices.IndexFunc(all, func(err error) bool { return err != nil })
	if first < 0 {
		return nil
	}
	return fmt.Errorf("step %d of %d: %w", first+1, len(all), all[first])
}

// TestW2_ANewDirectoryIsSyncedOrGone: a later start would not sync the parent of an existing directory.
func TestW2_ANewDirectoryIsSyncedOrGone(t *testing.T) {
	dir := filepath.Join(scratch(t), "new", "log")
	synced := false
	eachFailure(t, "syncDir", func(o Options) error {
		must(t, os.RemoveAll(dir))
		synced = false
		sync := o.disk.syncDir
		o.disk.syncDir = func(path string) error {
			err := sync(path)
			synced = synced || err == nil && path == filepath.Dir(dir)
			return err
		}
		return opensAndCloses(dir, o)
	}, func(n int, err error) {
		if _, gone := os.Stat(dir); err != nil && !synced && gone == nil {
			t.Errorf("syncDir %d: %v, and %s is there", n, err, dir)
		}
	})
}

// crashRecorder is a disk that copies the directory before each operation: the state after a crash there.
type crashRecorder struct {
	t      testing.TB
	dir    string
	images []diskImage
	ops    []string // what was done, by the base names of the files
}

// diskImage is the directory at one moment.
type diskImage struct {
	before string // the operation that did not happen any more
	files  map[string][]byte
	acked  uint64
}

// recordingDisk is a disk whose images contain acked(), the last acknowledged record.
func (r *crashRecorder) recordingDisk(acked func() uint64) *disk {
	return hookedDisk(func(kind, path string) error {
		if kind != "free" && kind != "forget" {
			op := kind + " " + filepath.Base(path)
			r.images = append(r.images, diskImage{before: op, files: readFiles(r.t, r.dir), acked: acked()})
			r.ops = append(r.ops, op)
		}
		return nil
	})
}

// newCrashRecorder records in a new directory.
func newCrashRecorder(t testing.TB, acked func() uint64) (*crashRecorder, Options) {
	t.Helper()
	r, o := &crashRecorder{t: t, dir: filepath.Join(scratch(t), "log")}, testOptions()
	o.disk = r.recordingDisk(acked)
	writeFiles(t, r.dir, nil)
	return r, o
}

// checkRecovery opens an image twice, checks it and appends to it.
func (i diskImage) checkRecovery(dir string) error {
	for range 2 {
		l, err := Open(dir, testOptions())
		if err != nil {
			return err
		}
		if l.Last() < i.acked {
			return fmt.Errorf("%d of %d acknowledged records", l.Last(), i.acked)
		}
		if err := checkLog(l); err != nil {
			return err
		}
		if _, err := l.Append(batchFrom(l.Last()+1, 3)); err != nil {
			return err
		}
		if err := l.Close(); err != nil {
			return err
		}
	}
	return nil
}

// crashAll opens every image, changed by damage, and returns all errors.
func (r *crashRecorder) crashAll(damage func(map[string][]byte)) (complaints []string) {
	dir := filepath.Join(scratch(r.t), "crash")
	for n, i := range r.images {
		left := maps.Clone(i.files)
		damage(left)
		writeFiles(r.t, dir, left)
		if err := i.checkRecovery(dir); err != nil {
			complaints = append(complaints, fmt.Sprintf("image %d, before %s: %v", n, i.before, err))
		}
	}
	return complaints
}

func TestW10_CrashAtEachStepOfSnapshotAndDrop(t *testing.T) {
	r := recordLifetime(t)
	if len(r.images) < 100 {
		t.Fatalf("%d images", len(r.images))
	}
	complaints := r.crashAll(func(map[string][]byte) {})
	t.Logf("%d crash points, %d bad", len(r.images), len(complaints))
	for _, c := range complaints {
		t.Error(c)
	}
}

// TestW10_CrashControl damages each image: the check must fail where records had been acknowledged.
func TestW10_CrashControl(t *testing.T) {
	r := recordLifetime(t)
	for name, damage := range map[string]func(map[string][]byte){
		"newest segment lost": func(f map[string][]byte) { delete(f, lastWithFrames(f)); delete(f, markName) },
		"snapshots too early": func(f map[string][]byte) {
			if names := segmentNames(f); len(names) > 1 {
				delete(f, names[0])
			}
		},
	} {
		complaints := r.crashAll(damage)
		t.Logf("%s: %d of %d noticed", name, len(complaints), len(r.images))
		if len(complaints) < len(r.images)/2 {
			t.Errorf("%s: the check notices %d of %d", name, len(complaints), len(r.images))
		}
	}
}

// recordLifetime records every operation that changes files.
func recordLifetime(t *testing.T) *crashRecorder {
	t.Helper()
	acked := uint64(0)
	r, o := newCrashRecorder(t, func() uint64 { return acked })
	for range 3 {
		l := mustOpen(t, r.dir, o)
		for range 2 {
			for range 12 {
				mustAppend(t, l, 1)
				acked = l.Last()
			}
			mustSnapshot(t, l, acked-1)
			must(t, l.DropBefore(acked))
		}
		mustClose(t, l)
	}
	return r
}

func TestW10_OrderOfSteps(t *testing.T) {
	r, o := newCrashRecorder(t, func() uint64 { return 0 })
	report := &goldenReport{dir: r.dir}
	step := func(what string, do func()) {
		r.ops = nil
		do()
		report.line("%s: %s", what, strings.Join(r.ops, ", "))
	}
	l := mustOpen(t, r.dir, o)
	mustAppend(t, l, 40)
	mustSnapshot(t, l, 10)
	mustSnapshot(t, l, l.Last()-20)
	step("snapshot", func() { mustSnapshot(t, l, l.Last()-1) })
	step("drop", func() { must(t, l.DropBefore(l.Last())) })
	mustClose(t, l)
	r, o = newCrashRecorder(t, func() uint64 { return 0 })
	o.SegmentBytes = 1
	l = mustOpen(t, r.dir, o)
	step("append that rolls", func() { mustAppend(t, l, 1) })
	step("close", func() { mustClose(t, l) })
	r, o = newCrashRecorder(t, func() uint64 { return 0 })
	step("create", func() { must(t, Create(r.dir, o, 41, writeText("state"))) })
	report.golden(t, "steps.txt")
}

func TestW3_CrashWhileATailIsCut(t *testing.T) {
	h := writeLog(t, 20)
	name := lastWithFrames(h.files)
	whole := len(h.batches)
	h.files[name] = h.files[name][:len(h.files[name])-3]
	h.files[markName] = h.marks[whole-2]
	h.files[filepath.Base(snapshotPath("", 3))+tempSuffix] = []byte("half")
	r, o := newCrashRecorder(t, func() uint64 { return uint64(h.batches[whole-2]) })
	writeFiles(t, r.dir, h.files)
	l := mustOpen(t, r.dir, o)
	if l.Recovery().TornBytes == 0 {
		t.Fatal("nothing was cut")
	}
	mustClose(t, l)
	complaints := r.crashAll(func(map[string][]byte) {})
	t.Logf("%d crash points, %d bad: %q", len(r.images), len(complaints), r.ops)
	if len(complaints) > 0 || len(r.images) < 8 {
		t.Errorf("%v", complaints)
	}
}
