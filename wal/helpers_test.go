package wal

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// sampleSize is whole if SWEEP=whole asks for complete sweeps, as make check does, and sample otherwise.
func sampleSize(sample, whole int) int {
	if os.Getenv("SWEEP") == "whole" {
		return whole
	}
	return sample
}

func testClock() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC) }

// quickDisk is the real disk without syncs.
func quickDisk() *disk {
	d := realDisk()
	d.sync = func(*os.File) error { return nil }
	d.syncDir = func(string) error { return nil }
	d.dropPageCache = func(*os.File) error { return nil }
	return d
}

// hookedDisk is a quick disk that calls before with each operation and its path. After an error it does not do it.
func hookedDisk(before func(kind, path string) error) *disk {
	q := quickDisk()
	hooked := func(kind, path string, do func() error) error {
		if err := before(kind, path); err != nil {
			return err
		}
		return do()
	}
	return &disk{
		sync:    func(f *os.File) error { return hooked("sync", f.Name(), func() error { return q.sync(f) }) },
		syncDir: func(dir string) error { return hooked("syncDir", dir, func() error { return q.syncDir(dir) }) },
		rename:  func(from, to string) error { return hooked("rename", from, func() error { return q.rename(from, to) }) },
		remove:  func(path string) error { return hooked("remove", path, func() error { return q.remove(path) }) },
		truncate: func(f *os.File, n int64) error {
			return hooked("truncate", f.Name(), func() error { return q.truncate(f, n) })
		},
		write: func(f *os.File, data []byte, at int64) error {
			return hooked("write", f.Name(), func() error { return q.write(f, data, at) })
		},
		freeBytes: func(dir string) (n int64, err error) {
			err = hooked("free", dir, func() error { n, err = q.freeBytes(dir); return err })
			return n, err
		},
		dropPageCache: func(f *os.File) error { return hooked("forget", f.Name(), func() error { return q.dropPageCache(f) }) },
	}
}

func testOptions() Options {
	return Options{SegmentBytes: 512, Clock: testClock, ReserveBytes: -1, disk: quickDisk()}
}

// record is the content of a record, derived from its sequence.
func record(seq uint64) []byte {
	return []byte(fmt.Sprintf("%d:%s", seq, strings.Repeat("x", int(seq*7%23))))
}

// batchFrom is n records from the sequence on.
func batchFrom(seq uint64, n int) [][]byte {
	var b [][]byte
	for i := range n {
		b = append(b, record(seq+uint64(i)))
	}
	return b
}

func mustOpen(t testing.TB, dir string, o Options) *Log {
	t.Helper()
	l, err := Open(dir, o)
	must(t, err)
	return l
}

func mustClose(t testing.TB, l *Log) {
	t.Helper()
	must(t, l.Close())
}

// mustAppend appends batches of 1, 2, 3, 1, ... records.
func mustAppend(t testing.TB, l *Log, batches int) {
	t.Helper()
	for i := range batches {
		n := 1 + i%3
		last := l.Last()
		got, err := l.Append(batchFrom(last+1, n))
		if err != nil || got != last+uint64(n) {
			t.Fatalf("append after %d: %d, %v", last, got, err)
		}
	}
}

func mustSnapshot(t testing.TB, l *Log, seq uint64) {
	t.Helper()
	must(t, l.WriteSnapshot(seq, stateAt(seq)))
}

// stateAt writes a state that names its sequence.
func stateAt(seq uint64) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "state %d", seq)
		return err
	}
}

// readFiles reads a directory except the lock file.
func readFiles(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	all := map[string][]byte{}
	for _, e := range entries {
		if e.Name() == lockName {
			continue
		}
		if all[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// writeFiles replaces the contents of dir.
func writeFiles(t testing.TB, dir string, all map[string][]byte) {
	t.Helper()
	must(t, errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700)))
	for name, data := range all {
		must(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
}

func hashDir(t testing.TB, dir string) string {
	t.Helper()
	all := readFiles(t, dir)
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		_, _ = fmt.Fprintf(h, "%s %d\n", name, len(all[name]))
		_, _ = h.Write(all[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// segmentNames is the names of segments, ascending.
func segmentNames(all map[string][]byte) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if len(name) == indexDigits && fileNames.MatchString(name) {
			names = append(names, name)
		}
	}
	return names
}

// checkLog reads the whole log: all records from First to Last must be those of record, and the snapshot must be
// followed by records without a gap.
func checkLog(l *Log) error {
	base, r, ok, err := l.Snapshot()
	if err != nil {
		return err
	}
	if ok {
		state, err := io.ReadAll(r)
		if err = errors.Join(err, r.Close()); err != nil {
			return err
		}
		if want := fmt.Sprintf("state %d", base); string(state) != want {
			return fmt.Errorf("snapshot %d holds %q", base, state)
		}
	}
	if l.First() > base+1 {
		return fmt.Errorf("log begins at %d, snapshot ends at %d", l.First(), base)
	}
	next := l.First()
	err = l.Read(next, func(seq uint64, got []byte) error {
		if seq != next || string(got) != string(record(seq)) {
			return fmt.Errorf("record %d: got %d %q", next, seq, got)
		}
		next++
		return nil
	})
	if err == nil && next != l.Last()+1 {
		err = fmt.Errorf("read up to %d of %d", next-1, l.Last())
	}
	return err
}

// wantWhole reports an error of checkLog.
func wantWhole(t testing.TB, l *Log) {
	t.Helper()
	if err := checkLog(l); err != nil {
		t.Error(err)
	}
}

// memoryFiles is a file system in memory on Linux.
const memoryFiles = "/dev/shm"

// scratch is a directory for tests that open thousands of logs, in memory where possible: the library syncs on every
// close.
func scratch(t testing.TB) string {
	t.Helper()
	if info, err := os.Stat(memoryFiles); err != nil || !info.IsDir() {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(memoryFiles, "wal-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
