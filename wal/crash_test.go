package wal

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"
)

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
