package wal

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
)

// TestRestore_CrashAtEachStep opens the directory as it was before each step of a restore: it is refused as damaged,
// whole, or still empty.
func TestRestore_CrashAtEachStep(t *testing.T) {
	images, want := restoreImages(t)
	refused, whole, nothing := 0, 0, 0
	for n, i := range images {
		dir := filepath.Join(scratch(t), "crash")
		writeFiles(t, dir, i.files)
		if m, state, err := readMark(dir); err == nil && state == MarkLost && m.generation == 0 && len(i.files) <= 1 {
			nothing++ // not even the mark
			continue
		}
		before := hashDir(t, dir)
		l, err := Open(dir, testOptions())
		var damage *DamageError
		switch {
		case errors.As(err, &damage) && hashDir(t, dir) == before:
			refused++
		case err == nil && l.Last() == want && checkLog(l) == nil:
			whole++
			mustClose(t, l)
		default:
			t.Errorf("image %d, before %s: %v", n, i.before, err)
		}
	}
	t.Logf("%d crash points: %d refused, %d whole, %d before anything was made", len(images), refused, whole, nothing)
	if refused < 10 || whole == 0 || nothing > 2 {
		t.Error("the steps are not what they should be")
	}
}

// restoreImages is the directory before each step of a restore, and the last record of the backup.
func restoreImages(t *testing.T) ([]diskImage, uint64) {
	t.Helper()
	l := mustOpen(t, filepath.Join(scratch(t), "log"), testOptions())
	mustAppend(t, l, 60) // from record 1 on: the worst case, as a shorter log is a log
	backup, info := backupOf(t, l, BackupOptions{})
	mustClose(t, l)
	r, o := newCrashRecorder(t, func() uint64 { return 0 })
	must(t, errorOf(RestoreBackup(bytes.NewReader(backup), "b", r.dir, o, BackupVisitor{})))
	return r.images, info.Last
}

// TestCreate creates a log that begins with a snapshot, appends to it and opens it again. The directory as it was
// before each step is refused, or not begun.
func TestCreate(t *testing.T) {
	r, o := newCrashRecorder(t, func() uint64 { return 0 })
	must(t, Create(r.dir, o, 41, strings.NewReader("state")))
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
	if err := Create(r.dir, o, 41, strings.NewReader("state")); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("over a log: %v", err)
	}
	failing := filepath.Join(scratch(t), "failing")
	if err := Create(failing, testOptions(), 41, iotest.ErrReader(io.ErrUnexpectedEOF)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	if _, err := os.Stat(failing); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a failed Create leaves its directory: %v", err)
	}
}

func TestRestore_Places(t *testing.T) {
	l := sampleLog(t, filepath.Join(scratch(t), "log"))
	backup, _ := backupOf(t, l, BackupOptions{})
	restore := func(dir string) error {
		_, err := RestoreBackup(bytes.NewReader(backup), "b", dir, testOptions(), BackupVisitor{})
		return err
	}
	if err := restore(l.dir); !errors.Is(err, ErrLocked) {
		t.Errorf("a log in use: %v", err)
	}
	mustClose(t, l)
	before := hashDir(t, l.dir)
	if err := restore(l.dir); !errors.Is(err, ErrNotEmpty) || hashDir(t, l.dir) != before {
		t.Errorf("a log: %v", err)
	}
	for _, dir := range []string{t.TempDir(), filepath.Join(t.TempDir(), "none")} {
		must(t, CheckRestore(dir))
	}
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	if err := CheckRestore(file); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("%v", err)
	}
	if err := restore(file); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("a file: %v", err)
	}
	empty := t.TempDir()
	if err := restore(empty); err != nil {
		t.Errorf("an empty directory: %v", err)
	}
	info, err := os.Stat(filepath.Join(empty, markName))
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
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

func FuzzVerifyBackup(f *testing.F) {
	l := sampleLog(f, filepath.Join(f.TempDir(), "log"))
	backup, want := backupOf(f, l, BackupOptions{})
	mustClose(f, l)
	f.Add(backup)
	f.Add(backup[:archiveHeaderBytes])
	f.Add([]byte("observedAt,institutionId"))
	f.Fuzz(func(t *testing.T, data []byte) {
		info, err := VerifyBackup(bytes.NewReader(data), "b", BackupVisitor{})
		var damage *DamageError
		var format *FormatError
		switch {
		case err == nil && (info != want || !bytes.Equal(data, backup)):
			t.Errorf("%d bytes pass as %+v", len(data), info)
		case err != nil && !errors.As(err, &damage) && !errors.As(err, &format):
			t.Errorf("%v", err)
		}
	})
}

// FuzzBackupStream reads streams as a node sends them: without a sum around their files.
func FuzzBackupStream(f *testing.F) {
	l := sampleLog(f, filepath.Join(f.TempDir(), "log"))
	var stream bytes.Buffer
	if _, err := l.Backup(&stream, BackupOptions{Clock: testClock}); err != nil {
		f.Fatal(err)
	}
	last := l.Last()
	mustClose(f, l)
	f.Add(stream.Bytes())
	f.Add(stream.Bytes()[:stream.Len()/2])
	f.Fuzz(func(t *testing.T, data []byte) {
		r := &backupReader{name: "b"} // as in PackBackup, without the compression
		info, err := r.readStream(bytes.NewReader(data))
		if err == nil && info.Last == last && bytes.Contains(data, []byte("state ")) {
			return
		}
		if err == nil && !strings.Contains(string(data), manifestName) {
			t.Errorf("%d bytes pass as %+v", len(data), info)
		}
	})
}
