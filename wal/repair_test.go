package wal

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestRepairCutsAtTheFirstDamage flips a bit of each frame in turn: records before it stay, the loss is reported,
// every byte is saved and the log is usable.
func TestRepairCutsAtTheFirstDamage(t *testing.T) {
	h := writeLog(t, 30)
	dir := filepath.Join(scratch(t), "log")
	batch := 0
	for _, name := range segmentNames(h.files) {
		offsets := frameOffsets(t, h.files[name])
		for _, at := range offsets[:len(offsets)-1] {
			writeFiles(t, dir, h.files)
			flip(t, filepath.Join(dir, name), at+50, 2)
			want := uint64(0)
			if batch > 0 {
				want = uint64(h.batches[batch-1])
			}
			r, err := Repair(dir, testOptions())
			if err != nil || r.Cause == nil || r.Last != want || r.LostFrom != want+1 || r.LostTo != uint64(len(h.records)) {
				t.Fatalf("batch %d: %+v, %v", batch, r, err)
			}
			if lost := savedBytes(t, r.SavedFiles) + logBytesOf(readFiles(t, dir)); lost != logBytesOf(h.files) {
				t.Fatalf("batch %d: %d bytes of %d are kept", batch, lost, logBytesOf(h.files))
			}
			checkAppends(t, dir, want)
			batch++
		}
	}
	t.Logf("%d repairs", batch)
}

func savedBytes(t *testing.T, paths []string) (n int) {
	t.Helper()
	for _, path := range paths {
		data, err := os.ReadFile(path)
		must(t, err)
		n += len(data)
	}
	return n
}

func logBytesOf(all map[string][]byte) (n int) {
	for _, name := range segmentNames(all) {
		n += len(all[name])
	}
	return n
}

// checkAppends opens a repaired log and appends to it.
func checkAppends(t *testing.T, dir string, last uint64) {
	t.Helper()
	l := mustOpen(t, dir, testOptions())
	if l.Last() != last || l.Recovery().TornBytes != 0 || l.Recovery().AmbiguousTail {
		t.Fatalf("last %d, want %d: %+v", l.Last(), last, l.Recovery())
	}
	must(t, checkLog(l))
	mustAppend(t, l, 20)
	mustClose(t, l)
	l = mustOpen(t, dir, testOptions())
	must(t, checkLog(l))
	mustClose(t, l)
}

// corruptFiles flips a bit in the first frame of one segment, or in every frame of several.
func corruptFiles(names ...string) func(map[string][]byte) {
	return func(f map[string][]byte) {
		for _, name := range names {
			f[name] = slices.Clone(f[name])
			for at := 50; at < len(f[name]); at += 40 {
				f[name][at] ^= 4
				if len(names) == 1 {
					break
				}
			}
		}
	}
}

func corruptEnd(name string) func(map[string][]byte) {
	return func(f map[string][]byte) {
		f[name] = slices.Clone(f[name])
		f[name][len(f[name])-6] ^= 4
	}
}

// TestRepairCrash stops a repair at each step: the next repair, or Open, succeeds.
func TestRepairCrash(t *testing.T) {
	dir := filepath.Join(scratch(t), "log")
	_, newer := compacted(t, dir)
	all := readFiles(t, dir)
	names := segmentNames(all)
	for what, change := range map[string]func(map[string][]byte){
		"front":   corruptFiles(names[0]),
		"restart": corruptFiles(names...),
		"tail":    corruptEnd(lastWithFrames(all)),
	} {
		broken := maps.Clone(all)
		change(broken)
		r, o := newCrashRecorder(t, func() uint64 { return newer })
		writeFiles(t, r.dir, broken)
		report, err := Repair(r.dir, o)
		must(t, err)
		next := filepath.Join(scratch(t), "log")
		for _, i := range r.images {
			writeFiles(t, next, i.files)
			again, err := Repair(next, testOptions())
			if err != nil || again.Last != report.Last {
				t.Errorf("%s, before %s: last %d, want %d: %v", what, i.before, again.Last, report.Last, err)
				continue
			}
			if err := i.checkRecovery(next); err != nil {
				t.Errorf("%s, before %s: %v", what, i.before, err)
			}
		}
		t.Logf("%s: %d crash points", what, len(r.images))
	}
}

func TestVerifyAndDumpChangeNothing(t *testing.T) {
	h := writeLog(t, 20, 9)
	dir := filepath.Join(scratch(t), "log")
	name := lastWithFrames(h.files)
	h.files[name] = append(slices.Clone(h.files[name]), "torn"...)
	writeFiles(t, dir, h.files)
	before := hashDir(t, dir)
	report, err := Verify(dir)
	want := Report{
		First: 1, Last: uint64(len(h.records)), Segments: len(segmentNames(h.files)), Batches: uint64(len(h.batches)),
		Records: uint64(len(h.records)), LogBytes: int64(logBytesOf(h.files) - 4), TornBytes: 4, Mark: MarkWhole,
	}
	if want.Snapshots = report.Snapshots; err != nil || len(report.Snapshots) != 1 || fmt.Sprint(report) != fmt.Sprint(want) {
		t.Errorf("%+v, %v", report, err)
	}
	var found [][]byte
	if err := Dump(dir, func(e Entry) error {
		f, _, bad := decodeEntry(h.files[filepath.Base(e.Segment)][e.Offset:])
		if bad != nil || e.Sequence < f.first || e.Sequence > f.last() || e.Sequence != uint64(len(found)+1) {
			t.Fatalf("%+v is not in frame %d", e, f.index)
		}
		found = append(found, slices.Clone(e.Record))
		return nil
	}); err != nil || !slices.EqualFunc(found, h.records, bytes.Equal) {
		t.Errorf("%d of %d records: %v", len(found), len(h.records), err)
	}
	if _, err := os.Stat(filepath.Join(dir, lockName)); !errors.Is(err, os.ErrNotExist) || hashDir(t, dir) != before {
		t.Errorf("the directory was changed: %v", err)
	}
	if _, err := Verify(filepath.Join(dir, "absent")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
	stop := errors.New("stop")
	if err := Dump(dir, func(Entry) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("visitor's error became %v", err)
	}
}

func TestExists(t *testing.T) {
	whole := filepath.Join(scratch(t), "log")
	compacted(t, whole)
	all := readFiles(t, whole)
	all[lockName], all[filepath.Base(segmentPath("", 1))+".END"] = nil, nil
	for name, content := range all {
		dir := scratch(t)
		must(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
		if found, err := Exists(dir); err != nil || found != (name != lockName) {
			t.Errorf("only %s: %t, %v", name, found, err)
		}
	}
	if found, err := Exists(filepath.Join(whole, markName)); found || err == nil {
		t.Errorf("a file: %t, %v", found, err)
	}
}
