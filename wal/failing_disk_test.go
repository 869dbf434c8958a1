package wal

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// failingDisk is a disk whose operation number left of one kind fails.
type failingDisk struct {
	kind string
	left int // the operation of this kind that fails, counted down
	hit  bool
}

// fails returns an error like those of package os.
func (f *failingDisk) fails(kind, path string) error {
	if kind != f.kind {
		return nil
	}
	if f.left--; f.left == 0 {
		f.hit = true
		return &os.PathError{Op: kind, Path: path, Err: errDisk}
	}
	return nil
}

func (f *failingDisk) disk() *disk { return hookedDisk(f.fails) }

// eachFailure makes each operation of a kind fail in turn. do gets options with the failing disk; check gets its
// error. The result is the number of operations.
func eachFailure(t *testing.T, kind string, do func(o Options) error, check func(n int, err error)) int {
	t.Helper()
	for n := 1; ; n++ {
		f, o := &failingDisk{kind: kind, left: n}, testOptions()
		o.disk = f.disk()
		err := do(o)
		if !f.hit {
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
