package wal

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

func TestEmptyLog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	l := mustOpen(t, dir, testOptions())
	if l.First() != 1 || l.Last() != 0 {
		t.Errorf("first %d last %d", l.First(), l.Last())
	}
	if _, _, ok, err := l.Snapshot(); ok || err != nil {
		t.Errorf("snapshot of nothing: %v %v", ok, err)
	}
	if last, err := l.Append(nil); last != 0 || err != nil {
		t.Errorf("empty batch: %d %v", last, err)
	}
	wantWhole(t, l)
	mustClose(t, l)
	mustClose(t, l)
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if r := mustOpenRecovery(t, dir); r.Mark != MarkWhole || r.AmbiguousTail || r.Last != 0 {
		t.Errorf("second open: %+v", r)
	}
}

func mustOpenRecovery(t *testing.T, dir string) Recovery {
	t.Helper()
	l := mustOpen(t, dir, testOptions())
	defer mustClose(t, l)
	return l.Recovery()
}

func TestOptionsAreChecked(t *testing.T) {
	for name, o := range map[string]Options{
		"no clock":       {},
		"negative size":  {Clock: testClock, SegmentBytes: -1},
		"segments large": {Clock: testClock, SegmentBytes: segmentBytesMax + 1},
	} {
		if _, err := Open(t.TempDir(), o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestReadFromTheMiddle(t *testing.T) {
	l := mustOpen(t, t.TempDir(), testOptions())
	defer mustClose(t, l)
	mustAppend(t, l, 40)
	for from := uint64(1); from <= l.Last()+2; from++ {
		next := from
		err := l.Read(from, func(seq uint64, got []byte) error {
			if seq != next || !bytes.Equal(got, record(seq)) {
				t.Fatalf("from %d: record %d is %d %q", from, next, seq, got)
			}
			next++
			return nil
		})
		if err != nil || next != max(from, l.Last()+1) {
			t.Fatalf("from %d: ended before %d, %v", from, next, err)
		}
	}
	if err := l.Read(0, func(uint64, []byte) error { return nil }); err == nil {
		t.Error("read before the first record")
	}
	stop := errors.New("stop")
	if err := l.Read(3, func(uint64, []byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("visitor's error became %v", err)
	}
}

// TestRead_EndsAtItsBegin: a batch that is appended meanwhile is not visited.
func TestRead_EndsAtItsBegin(t *testing.T) {
	l := mustOpen(t, t.TempDir(), Options{SegmentBytes: 512, Clock: testClock, ReserveBytes: -1})
	defer mustClose(t, l)
	mustAppend(t, l, 40)
	last, visited := l.Last(), uint64(0)
	err := l.Read(1, func(seq uint64, _ []byte) error {
		if visited = seq; seq == 1 { // the last segment has not been read yet
			mustAppend(t, l, 1)
		}
		return nil
	})
	if err != nil || visited != last || len(l.segments) < 2 {
		t.Errorf("%d of %d records visited, %v", visited, last, err)
	}
}

func flip(t testing.TB, path string, at, bit int) {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	data[at] ^= 1 << bit
	must(t, os.WriteFile(path, data, 0o600))
}

func TestClosedLogRefuses(t *testing.T) {
	l := mustOpen(t, t.TempDir(), testOptions())
	mustAppend(t, l, 3)
	mustClose(t, l)
	_, appended := l.Append(batchFrom(1, 1))
	_, _, _, snapshot := l.Snapshot()
	for name, err := range map[string]error{
		"append": appended, "snapshot": snapshot,
		"write snapshot": l.WriteSnapshot(1, stateAt(1)),
		"drop":           l.DropBefore(1),
		"read":           l.Read(1, nil),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRandomOperations uses logs at random, with restarts, crashes and changed segment sizes: checkLog must find every
// acknowledged record.
func TestRandomOperations(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir := scratch(t)
		o := testOptions()
		l := mustOpen(t, dir, o)
		acked := uint64(0)
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			switch rapid.SampledFrom([]string{"append", "append", "append", "snapshot", "drop", "reopen", "crash"}).Draw(rt, "step") {
			case "append":
				n := rapid.IntRange(1, 40).Draw(rt, "records")
				if _, err := l.Append(batchFrom(acked+1, n)); err != nil {
					rt.Fatal(err)
				}
				acked += uint64(n)
			case "snapshot":
				maybeSnapshot(rt, l, acked)
			case "drop":
				if err := l.DropBefore(rapid.Uint64Range(0, acked+2).Draw(rt, "before")); err != nil {
					rt.Fatal(err)
				}
			case "reopen":
				mustClose(t, l)
				o.SegmentBytes = rapid.IntRange(1, 2000).Draw(rt, "size")
				l = mustOpen(t, dir, o)
			case "crash":
				next := scratch(t)
				writeFiles(t, next, readFiles(t, dir))
				mustClose(t, l)
				dir = next
				l = mustOpen(t, dir, o)
			}
			if l.Last() != acked {
				rt.Fatalf("last %d of %d", l.Last(), acked)
			}
			if err := checkLog(l); err != nil {
				rt.Fatal(err)
			}
		}
		mustClose(t, l)
	})
}

func maybeSnapshot(rt *rapid.T, l *Log, acked uint64) {
	if acked == 0 {
		return
	}
	seq := rapid.Uint64Range(max(1, l.Stats().SnapshotSequence), acked).Draw(rt, "sequence")
	if err := l.WriteSnapshot(seq, stateAt(seq)); err != nil {
		rt.Fatal(err)
	}
}

// TestAppendBesideSnapshot runs Append and WriteSnapshot at once, for the race detector.
func TestAppendBesideSnapshot(t *testing.T) {
	l := mustOpen(t, t.TempDir(), testOptions())
	mustAppend(t, l, 10)
	start, done := make(chan struct{}), make(chan error)
	go func() {
		<-start
		var err error
		for seq := uint64(1); seq < 10 && err == nil; seq++ {
			err = l.WriteSnapshot(seq, func(w io.Writer) error {
				_ = l.Stats()
				return stateAt(seq)(w)
			})
			_, _ = l.First(), l.Last()
		}
		done <- err
	}()
	close(start)
	for range 50 {
		mustAppend(t, l, 3)
		must(t, l.DropBefore(l.Last()))
	}
	must(t, <-done)
	wantWhole(t, l)
	mustClose(t, l)
}

// TestFiles moves the named files elsewhere and opens the log there.
func TestFiles(t *testing.T) {
	if files, err := Files(filepath.Join(t.TempDir(), "none")); err != nil || len(files) > 0 {
		t.Errorf("a directory that is not there has %q, %v", files, err)
	}
	from, to := t.TempDir(), t.TempDir()
	l := mustOpen(t, from, testOptions())
	mustAppend(t, l, 40)
	mustSnapshot(t, l, 7)
	last := l.Last()
	mustClose(t, l)
	for _, name := range []string{"cluster.json", "00000000000000000001.torn-x"} {
		must(t, os.WriteFile(filepath.Join(from, name), nil, 0o600))
	}
	files, err := Files(from)
	if err != nil || filepath.Base(files[0]) != markName {
		t.Fatalf("%q, %v", files, err)
	}
	for _, f := range files {
		must(t, os.Rename(f, filepath.Join(to, filepath.Base(f))))
	}
	left, err := os.ReadDir(from)
	if err != nil || len(left) != 3 || !slices.ContainsFunc(left, func(e os.DirEntry) bool { return e.Name() == lockName }) {
		t.Errorf("left: %v, %v", left, err)
	}
	moved := mustOpen(t, to, testOptions())
	defer mustClose(t, moved)
	if moved.Last() != last || moved.Recovery().SnapshotSequence != 7 || len(files) < 5 {
		t.Errorf("the log that was moved ends with %d, want %d; files %q", moved.Last(), last, files)
	}
}

func TestListTellsFilesFromDirectories(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{snapshotPath("", 3) + tempSuffix, snapshotPath("", 4), segmentPath("", 5)} {
		must(t, os.Mkdir(filepath.Join(dir, filepath.Base(name)), 0o700))
	}
	for _, name := range []string{snapshotPath("", 6) + tempSuffix, snapshotPath("", 7), segmentPath("", 8), snapshotPath("", 0), "snapshot-x.tmp"} {
		must(t, os.WriteFile(filepath.Join(dir, filepath.Base(name)), nil, 0o600))
	}
	l, err := listDir(dir)
	if err != nil || len(l.temps) != 1 || len(l.snapshots) != 1 || len(l.segments) != 1 || len(l.foreign) != 3 {
		t.Errorf("%+v, %v", l, err)
	}
}

// TestWhatCannotBeReadIsAnError lets each reader fail.
func TestWhatCannotBeReadIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	missing := filepath.Join(t.TempDir(), "missing")
	_, _, markErr := readMark(file)
	_, listErr := examine(file, nil)
	_, cutErr := cutTail(testOptions(), "torn", missing, 0)
	_, lockErr := lock(file)
	_, sharedErr := lockShared(file)
	_, chooseErr := (&repair{}).chooseRun([]numberedFile{{1, missing}}, 0)
	_, snapshotErr := (&SnapshotReport{Sequence: 1, File: missing}).open()
	_, repairErr := Repair(missing, testOptions())
	_, repairedErr := Repair(file, testOptions())
	closed, err := os.Open(file)
	must(t, errors.Join(err, closed.Close()))
	for name, c := range map[string]struct {
		err, want error
		words     string
	}{
		"mark": {markErr, unix.ENOTDIR, "file/mark: "}, "directory": {listErr, unix.ENOTDIR, "open " + file},
		"tail": {cutErr, fs.ErrNotExist, missing}, "lock": {lockErr, unix.ENOTDIR, "lock "}, "shared lock": {sharedErr, unix.ENOTDIR, "lock "},
		"choice":   {chooseErr, fs.ErrNotExist, missing},
		"snapshot": {snapshotErr, fs.ErrNotExist, missing}, "unlock": {unlock(closed), nil, "unlock: "},
		"repair": {repairErr, fs.ErrNotExist, ""}, "repair of a file": {repairedErr, nil, ""},
	} {
		if c.err == nil || c.want != nil && !errors.Is(c.err, c.want) || !strings.Contains(c.err.Error(), c.words) {
			t.Errorf("%s: %v, want %v in %q", name, c.err, c.want, c.words)
		}
	}
}

// TestFilesRemovedFromOpenLog removes the newest snapshot and the last records of an open log.
func TestFilesRemovedFromOpenLog(t *testing.T) {
	dir := scratch(t)
	_, newer := compacted(t, dir)
	l := mustOpen(t, dir, testOptions())
	must(t, os.Remove(snapshotPath(dir, newer)))
	if _, _, ok, err := l.Snapshot(); ok || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a snapshot that is gone: %v, %v", ok, err)
	}
	tail := l.segments[len(l.segments)-1]
	if tail.bytes == 0 {
		tail = l.segments[len(l.segments)-2]
	}
	data, err := os.ReadFile(tail.path)
	must(t, err)
	offsets := frameOffsets(t, data)
	must(t, os.Truncate(tail.path, int64(offsets[len(offsets)-2])))
	var damage *DamageError
	err = l.Read(l.First(), func(uint64, []byte) error { return nil })
	if !errors.As(err, &damage) {
		t.Errorf("the last records are gone: %v", err)
	}
	mustClose(t, l)
}

func TestSnapshotSequences(t *testing.T) {
	l := mustOpen(t, t.TempDir(), testOptions())
	defer mustClose(t, l)
	mustAppend(t, l, 5)
	mustSnapshot(t, l, 3)
	never := func(io.Writer) error { t.Error("written"); return nil }
	for name, seq := range map[string]uint64{"zero": 0, "not on disk": l.Last() + 1, "older": 2} {
		if err := l.WriteSnapshot(seq, never); err == nil || errors.Is(err, ErrPoisoned) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := l.WriteSnapshot(3, never); err != nil {
		t.Errorf("the same again: %v", err)
	}
	mustAppend(t, l, 1)
}

func TestSnapshotWriterFails(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, testOptions())
	defer mustClose(t, l)
	mustAppend(t, l, 5)
	before := hashDir(t, dir)
	cause := errors.New("state is odd")
	err := l.WriteSnapshot(2, func(w io.Writer) error {
		_, _ = w.Write(make([]byte, 200_000))
		return cause
	})
	if !errors.Is(err, cause) || errors.Is(err, ErrPoisoned) || hashDir(t, dir) != before || l.Stats().SnapshotSequence != 0 {
		t.Errorf("got %v; %+v", err, l.Stats())
	}
	mustSnapshot(t, l, 2)
}

// compacted is a log with two snapshots whose oldest segments were dropped.
func compacted(t testing.TB, dir string) (older, newer uint64) {
	t.Helper()
	l := mustOpen(t, dir, testOptions())
	defer mustClose(t, l)
	mustAppend(t, l, 40)
	older = l.Last()
	mustSnapshot(t, l, older)
	must(t, l.DropBefore(older))
	if l.First() != 1 {
		t.Fatal("dropped what a damaged only snapshot would need")
	}
	mustAppend(t, l, 40)
	newer = l.Last()
	mustSnapshot(t, l, newer)
	must(t, l.DropBefore(newer))
	if l.First() == 1 || l.First() > older+1 {
		t.Fatalf("begins with %d, older snapshot %d", l.First(), older)
	}
	mustAppend(t, l, 3)
	return older, newer
}

// TestW10_DropKeepsWhatTheOlderSnapshotNeeds: the record after the second-newest snapshot stays, even as the first of a
// segment.
func TestW10_DropKeepsWhatTheOlderSnapshotNeeds(t *testing.T) {
	o := testOptions()
	o.SegmentBytes = 1 // every batch fills a segment
	l := mustOpen(t, t.TempDir(), o)
	defer mustClose(t, l)
	for range 6 {
		must(t, appendOne(l))
	}
	mustSnapshot(t, l, 3)
	mustSnapshot(t, l, 5)
	must(t, l.DropBefore(6))
	if l.First() != 4 {
		t.Errorf("the log begins with %d after snapshots at 3 and 5", l.First())
	}
}

// observedSyncs returns the number of syncs that Stats has counted, and the seconds that they took.
func observedSyncs(t *testing.T, l *Log) (uint64, float64) {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(l.Stats().Syncs)
	families, err := registry.Gather()
	must(t, err)
	h := families[0].GetMetric()[0].GetHistogram()
	return h.GetSampleCount(), h.GetSampleSum()
}

func TestStats_WhatWasAppended(t *testing.T) {
	dir, o := t.TempDir(), testOptions()
	o.SegmentBytes = 0
	now, step := testClock(), 7*time.Millisecond
	o.Clock = func() time.Time { now = now.Add(step); return now }
	l := mustOpen(t, dir, o)
	mustAppend(t, l, 5)
	got := l.Stats()
	if got.Batches != 5 || got.Records != 1+2+3+1+2 || got.First != 1 || got.Last != 9 || got.Segments != 1 || got.Snapshots != 0 {
		t.Errorf("%+v", got)
	}
	info, err := os.Stat(segmentPath(dir, 1))
	if err != nil || got.Bytes != info.Size() || got.LogBytes != info.Size() {
		t.Errorf("%d bytes appended, %d in the log, the file has %v, %v", got.Bytes, got.LogBytes, info.Size(), err)
	}
	step = -time.Hour // a clock that is set back: no time
	mustAppend(t, l, 1)
	if count, sum := observedSyncs(t, l); count != 6 || math.Abs(sum-0.035) > 1e-9 {
		t.Errorf("%d syncs in %v s, want 6 in 0.035 s", count, sum)
	}
	got = l.Stats()
	mustClose(t, l)
	l = mustOpen(t, dir, testOptions())
	defer mustClose(t, l)
	if again := l.Stats(); again.Batches != 0 || again.Bytes != 0 || again.LogBytes != got.LogBytes || again.Last != 10 {
		t.Errorf("opened again: %+v", again)
	}
}

// TestStats_ASyncThatFails counts the sync and not the batch.
func TestStats_ASyncThatFails(t *testing.T) {
	l := mustOpen(t, t.TempDir(), testOptions())
	mustAppend(t, l, 1)
	real := l.store
	l.store = &failingStore{store: real, failSync: true}
	if _, err := l.Append(batchFrom(2, 1)); !errors.Is(err, ErrPoisoned) {
		t.Fatal(err)
	}
	count, _ := observedSyncs(t, l)
	if got := l.Stats(); got.Batches != 1 || got.Records != 1 || count != 2 {
		t.Errorf("%+v, %d syncs", got, count)
	}
	l.store = real
	mustClose(t, l)
}

func TestStats_Snapshots(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, testOptions())
	mustAppend(t, l, 4)
	mustSnapshot(t, l, 3)
	mustSnapshot(t, l, 6)
	got := l.Stats()
	if got.Snapshots != 2 || got.SnapshotSequence != 6 || !got.SnapshotAt.Equal(testClock()) {
		t.Errorf("%+v", got)
	}
	if want := int64(2*(snapshotHeaderBytes+snapshotTrailerBytes) + len("state 3") + len("state 6")); got.SnapshotBytes != want {
		t.Errorf("%d bytes of snapshots, want %d", got.SnapshotBytes, want)
	}
	mustClose(t, l)
	at := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	must(t, os.Chtimes(snapshotPath(dir, 6), at, at))
	l = mustOpen(t, dir, testOptions())
	defer mustClose(t, l)
	if again := l.Stats(); again.SnapshotSequence != 6 || !again.SnapshotAt.Equal(at) {
		t.Errorf("opened again: %+v", again)
	}
}

// blockingStore is a store whose sync blocks until released.
type blockingStore struct {
	store
	entered, end chan struct{}
}

func (s blockingStore) Sync() error {
	close(s.entered)
	<-s.end
	return s.store.Sync()
}

// TestStats_DoesNotWaitForDisk calls Stats while a sync hangs.
func TestStats_DoesNotWaitForDisk(t *testing.T) {
	l := mustOpen(t, t.TempDir(), testOptions())
	mustAppend(t, l, 1)
	real := l.store
	hung := blockingStore{real, make(chan struct{}), make(chan struct{})}
	l.store = hung
	ended := make(chan error, 1)
	go func() {
		_, err := l.Append(batchFrom(2, 1))
		ended <- err
	}()
	<-hung.entered
	if got := l.Stats(); got.Batches != 1 || got.Last != 1 {
		t.Errorf("while a sync hangs: %+v", got)
	}
	close(hung.end)
	if err := <-ended; err != nil || l.Stats().Batches != 2 {
		t.Errorf("afterwards: %v, %+v", err, l.Stats())
	}
	l.store = real
	mustClose(t, l)
}
