package wal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func writeText(text string) func(io.Writer) error {
	return func(w io.Writer) error { return errorOf(io.WriteString(w, text)) }
}

// TestCreate creates a log that begins with a snapshot, appends to it and opens it again. The directory as it was
// before each step is refused, or not begun.
func TestCreate(t *testing.T) {
	r, o := newCrashRecorder(t, func() uint64 { return 0 })
	must(t, Create(r.dir, o, 41, writeText("state")))
	for n, i := range r.images {
		dir := filepath.Join(scratch(t), "crash")
		writeFiles(t, dir, i.files)
		l, err := Open(dir, testOptions())
		var damage *DamageError
		switch {
		case errors.As(err, &damage):
		case err == nil && (l.Last() == 41 || len(i.files) <= 2): // complete, or only LOCK and an empty mark
			mustClose(t, l)
		default:
			t.Errorf("image %d, before %s: %v", n, i.before, err)
		}
	}
	for last := uint64(41); last < 44; last++ {
		l := mustOpen(t, r.dir, testOptions())
		sequence, state, ok, err := l.Snapshot()
		if err != nil || !ok || sequence != 41 || l.Last() != last || l.First() != 42 {
			t.Fatal(sequence, ok, l.First(), l.Last(), err)
		}
		text, err := io.ReadAll(state)
		if must(t, errors.Join(err, state.Close())); string(text) != "state" {
			t.Errorf("the state is %q", text)
		}
		mustAppend(t, l, 1)
		mustClose(t, l)
	}
	if err := Create(r.dir, o, 41, writeText("state")); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("over a log: %v", err)
	}
	failing := filepath.Join(scratch(t), "failing")
	if err := Create(failing, testOptions(), 41, func(io.Writer) error { return io.ErrUnexpectedEOF }); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	if _, err := os.Stat(failing); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a failed Create leaves its directory: %v", err)
	}
}

// TestCreate_Empty creates a log of a state without a record: it begins with record 1 and has no snapshot.
func TestCreate_Empty(t *testing.T) {
	dir := filepath.Join(scratch(t), "r")
	must(t, Create(dir, testOptions(), 0, writeText("")))
	l := mustOpen(t, dir, testOptions())
	if _, _, ok, err := l.Snapshot(); ok || err != nil || l.First() != 1 || l.Last() != 0 {
		t.Errorf("%d to %d, %v, %v", l.First(), l.Last(), ok, err)
	}
	mustAppend(t, l, 2)
	mustClose(t, l)
}

func TestCreate_Places(t *testing.T) {
	create := func(dir string) error { return Create(dir, testOptions(), 7, writeText("state")) }
	l := mustOpen(t, filepath.Join(scratch(t), "log"), testOptions())
	if err := create(l.dir); !errors.Is(err, ErrLocked) {
		t.Errorf("a log in use: %v", err)
	}
	mustClose(t, l)
	before := hashDir(t, l.dir)
	if err := create(l.dir); !errors.Is(err, ErrNotEmpty) || hashDir(t, l.dir) != before {
		t.Errorf("a log: %v", err)
	}
	for _, dir := range []string{t.TempDir(), filepath.Join(t.TempDir(), "none")} {
		must(t, CheckEmpty(dir))
	}
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	if err := CheckEmpty(file); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("%v", err)
	}
	if err := create(file); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("a file: %v", err)
	}
	empty := t.TempDir()
	if err := create(empty); err != nil {
		t.Errorf("an empty directory: %v", err)
	}
	info, err := os.Stat(filepath.Join(empty, markName))
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if open := openFilesBelow(t, empty); len(open) > 0 {
		t.Errorf("still open: %q", open)
	}
	held, err := lock(empty)
	must(t, err)
	if open := openFilesBelow(t, empty); len(open) != 1 {
		t.Errorf("control: one file is open, found %q", open)
	}
	must(t, unlock(held))
}

// TestCreate_FileAppearsBeforeLock lets a file appear in the directory before it is locked.
func TestCreate_FileAppearsBeforeLock(t *testing.T) {
	dir := filepath.Join(scratch(t), "r")
	theirs := filepath.Join(dir, "theirs")
	o := testOptions()
	o.disk.syncDir = func(string) error { return os.WriteFile(theirs, nil, 0o600) } // between check and lock
	err := Create(dir, o, 7, writeText("state"))
	if _, stays := os.Stat(theirs); !errors.Is(err, ErrNotEmpty) || stays != nil {
		t.Errorf("%v; theirs: %v", err, stays)
	}
	held, err := lock(dir)
	if err != nil {
		t.Fatalf("it is still held: %v", err)
	}
	must(t, unlock(held))
}

// TestW6_EachFailureOfCreateIsReported makes each single operation of Create fail, and of its removal after an error.
func TestW6_EachFailureOfCreateIsReported(t *testing.T) {
	for _, kind := range []string{"sync", "syncDir", "write"} {
		dir := ""
		fired := eachFailure(t, kind, func(o Options) error {
			dir = filepath.Join(scratch(t), "r")
			return Create(dir, o, 7, writeText("state"))
		}, func(n int, err error) {
			if _, gone := os.Stat(dir); !errors.Is(err, errDisk) || !errors.Is(gone, os.ErrNotExist) {
				t.Errorf("%s %d: %v; left: %v", kind, n, err, gone)
			}
		})
		if t.Logf("%s fails %d times", kind, fired); fired == 0 {
			t.Errorf("no %s", kind)
		}
	}
	// Files that cannot be removed stay, with the mark: the directory is refused.
	dir := filepath.Join(scratch(t), "stays")
	o := testOptions()
	o.disk.remove = func(path string) error { return fmt.Errorf("remove %s: %w", filepath.Base(path), errDisk) }
	planted := errors.New("planted")
	err := Create(dir, o, 7, func(io.Writer) error { return planted })
	if !errors.Is(err, errDisk) || !errors.Is(err, planted) || !strings.Contains(err.Error(), "remove the files of a log that could not be completed: ") {
		t.Errorf("undo: %v", err)
	}
	if _, err := Open(dir, testOptions()); err == nil {
		t.Error("half a log is served")
	}
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

func TestCreateFile_WholeOrNothing(t *testing.T) {
	dir := t.TempDir()
	path, planted := filepath.Join(dir, "b"), errors.New("planted")
	write := func(text string) func(io.Writer) error {
		return func(w io.Writer) error {
			if left, err := filepath.Glob(path); err != nil || len(left) > 0 {
				t.Error("the name is there before the file")
			}
			_, err := io.WriteString(w, text)
			return err
		}
	}
	good := func(r io.Reader) error {
		text, err := io.ReadAll(r)
		if string(text) != "whole" {
			return planted
		}
		return err
	}
	for name, err := range map[string]error{
		"fill":  CreateFile(path, func(io.Writer) error { return planted }, good),
		"check": CreateFile(path, write("half"), good),
	} {
		if entries, _ := os.ReadDir(dir); !errors.Is(err, planted) || len(entries) > 0 {
			t.Errorf("%s: %v, left: %v", name, err, entries)
		}
	}
	must(t, CreateFile(path, write("whole"), good))
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := CreateFile(path, write("whole"), good); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second time: %v", err)
	}
	// Another process creates the file meanwhile.
	late := filepath.Join(dir, "late")
	err = CreateFile(late, func(w io.Writer) error {
		return errors.Join(os.WriteFile(late, []byte("theirs"), 0o600), errorOf(io.WriteString(w, "whole")))
	}, good)
	theirs, readErr := os.ReadFile(late)
	entries, listErr := os.ReadDir(dir)
	if !errors.Is(err, fs.ErrExist) || string(theirs) != "theirs" || len(entries) != 2 || readErr != nil || listErr != nil {
		t.Errorf("%v; theirs is %q; %d files", err, theirs, len(entries))
	}
}
