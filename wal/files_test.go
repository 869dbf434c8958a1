package wal

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestFiles names what the log needs and nothing else: moved elsewhere, these files are the log.
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
