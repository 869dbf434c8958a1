package wal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestW4_AWholeFrameBehindDamageIsNamed(t *testing.T) {
	h := write(t, 40)
	last := lastWithFrames(h.files)
	offsets := frameOffsets(t, h.files[last])
	broken := maps.Clone(h.files)
	broken[last] = bytes.Clone(broken[last])
	broken[last][offsets[1]+45] ^= 1
	dir := filepath.Join(scratch(t), "log")
	put(t, dir, broken)
	f, _, bad := decodeEntry(h.files[last][offsets[2]:])
	if bad != nil {
		t.Fatal(bad.found)
	}
	// The search finds the frame itself, behind the library's length of one byte.
	want := fmt.Sprintf("but frame %d whole at offset %d", f.index, offsets[2]+1)
	if _, err := Verify(dir); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestTheLongestTornTail(t *testing.T) {
	h := write(t, 40)
	last := lastWithFrames(h.files)
	for more, torn := range map[int]bool{entryBytesMax: true, entryBytesMax + 1: false} {
		dir := filepath.Join(scratch(t), "log")
		put(t, dir, h.files)
		must(t, os.Truncate(filepath.Join(dir, last), int64(len(h.files[last])+more)))
		if report, err := Verify(dir); (err == nil && report.TornBytes == int64(more)) != torn {
			t.Errorf("%d zero bytes: %+v, %v", more, report, err)
		}
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
	l, err := list(dir)
	if err != nil || len(l.temps) != 1 || len(l.snapshots) != 1 || len(l.segments) != 1 || len(l.foreign) != 3 {
		t.Errorf("%+v, %v", l, err)
	}
}

// TestWhatCannotBeReadIsAnError gives each reader something else than a file.
func TestWhatCannotBeReadIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	missing := filepath.Join(t.TempDir(), "missing")
	_, _, markErr := readMark(file)
	_, listErr := examine(file, nil)
	_, cutErr := cutTail(testOptions(), "torn", missing, 0)
	_, lockErr := lock(file)
	_, sharedErr := lockShared(file)
	_, traceErr := trace([]numbered{{1, missing}})
	_, chooseErr := (&repair{}).choose([]numbered{{1, missing}}, 0)
	_, _, _, snapshotErr := openSnapshot(numbered{1, missing})
	closed, err := os.Open(file)
	must(t, errors.Join(err, closed.Close()))
	for name, c := range map[string]struct {
		err, want error
		words     string
	}{
		"mark": {markErr, unix.ENOTDIR, "read mark: "}, "directory": {listErr, unix.ENOTDIR, "list log directory: "},
		"tail": {cutErr, fs.ErrNotExist, "read tail: "}, "lock": {lockErr, unix.ENOTDIR, "lock "}, "shared lock": {sharedErr, unix.ENOTDIR, "lock "},
		"trace": {traceErr, fs.ErrNotExist, missing}, "choice": {chooseErr, fs.ErrNotExist, "scan log: "},
		"snapshot": {snapshotErr, fs.ErrNotExist, "open snapshot: "}, "unlock": {unlock(closed), os.ErrClosed, "unlock: "},
	} {
		if c.err == nil || !errors.Is(c.err, c.want) || !strings.Contains(c.err.Error(), c.words) {
			if name != "unlock" || c.err == nil || !strings.Contains(c.err.Error(), c.words) {
				t.Errorf("%s: %v, want %v in %q", name, c.err, c.want, c.words)
			}
		}
	}
}

// TestFilesThatGoWhileTheLogIsOpen takes the newest snapshot and the last records away from an open log.
func TestFilesThatGoWhileTheLogIsOpen(t *testing.T) {
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
