package wal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"golang.org/x/sys/unix"
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

// TestReplace replaces a log. The directory as it was before each step has the old log or is refused, and then the same
// call completes it.
func TestReplace(t *testing.T) {
	r, o := newCrashRecorder(t, func() uint64 { return 0 })
	l := mustOpen(t, r.dir, o)
	for range 3 {
		mustAppend(t, l, 2)
		must(t, l.WriteSnapshot(l.Last(), writeText("old")))
	}
	mustClose(t, l)
	last, theirs := l.Last(), filepath.Join(r.dir, "theirs")
	must(t, os.WriteFile(theirs, nil, 0o600))
	r.images = nil
	must(t, replace(r.dir, o.disk, 41, writeText("state")))
	if _, err := os.Stat(theirs); err != nil {
		t.Error(err)
	}
	refused := 0
	for n, i := range r.images {
		dir := filepath.Join(scratch(t), "crash")
		writeFiles(t, dir, i.files)
		l, err := Open(dir, testOptions())
		var damage *DamageError
		switch {
		case err == nil && (l.Last() == last && refused == 0 || l.Last() == 41):
			mustClose(t, l)
		case errors.As(err, &damage):
			refused++
		default:
			t.Errorf("image %d, before %s: %v", n, i.before, err)
		}
		must(t, Replace(dir, 41, writeText("state")))
		l = mustOpen(t, dir, testOptions())
		if sequence, _, _, err := l.Snapshot(); err != nil || sequence != 41 || l.Last() != 41 || l.First() != 42 {
			t.Errorf("image %d: %d, %d to %d, %v", n, sequence, l.First(), l.Last(), err)
		}
		mustClose(t, l)
	}
	if files, err := Files(r.dir); err != nil || len(files) != 3 || refused == 0 {
		t.Errorf("%q, %v; %d refused", files, err, refused)
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

// TestCreateFile_Durable makes the sync of a file fail, then that of its directory: both are errors of CreateFile.
func TestCreateFile_Durable(t *testing.T) {
	dir := t.TempDir()
	path, accepts := filepath.Join(dir, "b"), func(io.Reader) error { return nil }
	err := CreateFile(path, func(w io.Writer) error { // the file becomes a device, which cannot be synced
		null, err := os.Open(os.DevNull)
		must(t, err)
		return errors.Join(unix.Dup2(int(null.Fd()), int(w.(*os.File).Fd())), null.Close())
	}, accepts)
	if entries, _ := os.ReadDir(dir); err == nil || len(entries) > 0 {
		t.Errorf("the file is not synced: %v, left: %v", err, entries)
	}
	var limit unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	defer func() { must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)) }()
	err = CreateFile(path, func(io.Writer) error { // from now on no directory can be opened
		return unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: limit.Max})
	}, accepts)
	if !errors.Is(err, unix.EMFILE) {
		t.Errorf("the directory is not synced: %v", err)
	}
}

// sampleState is a state of several blocks of zstd, of which some cannot be compressed.
func sampleState() []byte {
	state := []byte(strings.Repeat("a state that repeats itself, ", 20_000))
	chance := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		state = append(state, byte(chance.IntN(256)))
	}
	return state
}

func sampleInfo() BackupInfo {
	return BackupInfo{Program: "v1.2.3", TakenAt: testClock().UTC(), Sequence: 41}
}

func sampleBackup(t testing.TB, state []byte) []byte {
	t.Helper()
	var file bytes.Buffer
	must(t, WriteBackup(&file, sampleInfo(), func(w io.Writer) error { return errorOf(w.Write(state)) }))
	return file.Bytes()
}

// readBackup reads a backup to its end.
func readBackup(file io.Reader) (BackupInfo, []byte, error) {
	r, err := OpenBackup(file, "b")
	if err != nil {
		return BackupInfo{}, nil, err
	}
	defer r.Close()
	state, err := io.ReadAll(r)
	return r.Info, state, err
}

func TestBackup_IsReadAsItWasWritten(t *testing.T) {
	for name, state := range map[string][]byte{"empty": {}, "small": []byte("state"), "large": sampleState()} {
		info, got, err := readBackup(iotest.OneByteReader(bytes.NewReader(sampleBackup(t, state))))
		if err != nil || info != sampleInfo() || !bytes.Equal(got, state) {
			t.Errorf("%s: %+v, %d of %d bytes, %v", name, info, len(got), len(state), err)
		}
	}
	r, err := OpenBackup(bytes.NewReader(sampleBackup(t, sampleState())), "b")
	must(t, err)
	must(t, iotest.TestReader(r, sampleState()))
	r.Close()
}

// TestBackup_EveryFlipAndCutIsRefused: a changed file is refused, with one line that names it, unless the changed bit
// has no meaning and the content is the same. A shortened file is always refused.
func TestBackup_EveryFlipAndCutIsRefused(t *testing.T) {
	state := sampleState()[len(sampleState())-3000:]
	whole := sampleBackup(t, state)
	damaged := func(what string, data []byte, cut bool) (refused bool) {
		info, got, err := readBackup(bytes.NewReader(data))
		var damage *DamageError
		var format *FormatError
		switch {
		case err == nil && !cut && info == sampleInfo() && bytes.Equal(got, state):
			return false
		case err == nil || !errors.As(err, &damage) && !errors.As(err, &format) || strings.Contains(err.Error(), "\n"):
			t.Errorf("%s: %v", what, err)
		}
		return true
	}
	same := 0
	for bit := range 8 * len(whole) {
		data := bytes.Clone(whole)
		data[bit/8] ^= 1 << (bit % 8)
		if !damaged(fmt.Sprint("bit ", bit), data, false) {
			same++
		}
	}
	for at := range len(whole) {
		damaged(fmt.Sprint("cut at ", at), whole[:at], true)
	}
	damaged("a byte behind it", append(bytes.Clone(whole), 0), true)
	if t.Logf("%d flips, %d without a meaning, %d cuts", 8*len(whole), same, len(whole)); same > 8 {
		t.Errorf("%d flips change nothing", same)
	}
}

// TestGolden_BackupsRefused compares the errors of files that are not a backup, or a damaged one.
func TestGolden_BackupsRefused(t *testing.T) {
	report := &goldenReport{dir: "/none"}
	whole := sampleBackup(t, []byte("content"))
	changed := func(at int, value byte) []byte {
		b := bytes.Clone(whole)
		b[at] = value
		return b
	}
	for _, c := range []struct {
		name string
		data []byte
	}{
		{"nothing", nil},
		{"half a header", whole[:9]},
		{"only a header", whole[:backupHeaderBytes]},
		{"another program's", bytes.Repeat([]byte("no backup"), 20)},
		{"another magic", changed(8, 'T')},
		{"version 1", changed(backupVersionAt, 1)},
		{"version 2", changed(backupVersionAt, 2)},
		{"version 4", changed(backupVersionAt, 4)},
		{"something behind the version", changed(13, 1)},
		{"nothing that zstd knows", changed(backupHeaderBytes, 0)},
		{"no end", whole[:len(whole)-1]},
		{"another checksum", changed(len(whole)-1, whole[len(whole)-1]^1)},
		{"a byte behind it", append(bytes.Clone(whole), 0)},
	} {
		_, _, err := readBackup(bytes.NewReader(c.data))
		report.line("%s: %v", c.name, err)
	}
	report.golden(t, "backups.txt")
}

// TestW11_GoldenBackups reads a fixture of format version 3, and refuses one of version 2 with a message that names the
// program to use. Fixtures are never replaced, also not with -update; a later format gets its own.
func TestW11_GoldenBackups(t *testing.T) {
	fixture := filepath.Join("testdata", "backup-v3.zst")
	if _, err := os.Stat(fixture); *update && errors.Is(err, os.ErrNotExist) {
		must(t, os.WriteFile(fixture, sampleBackup(t, []byte("content")), 0o644))
	}
	data, err := os.ReadFile(fixture)
	must(t, err)
	info, state, err := readBackup(bytes.NewReader(data))
	if err != nil || info != sampleInfo() || string(state) != "content" {
		t.Errorf("%+v, %q, %v", info, state, err)
	}
	data, err = os.ReadFile(filepath.Join("testdata", "backup-v2.tasard"))
	must(t, err)
	_, _, err = readBackup(bytes.NewReader(data))
	var format *FormatError
	if !errors.As(err, &format) || format.Version != 2 || !strings.Contains(err.Error(), "use the older tasard that wrote it") {
		t.Error(err)
	}
}

// TestBackup_WriterThatFails: after an error of the state the file is refused, and each failed write is reported.
func TestBackup_WriterThatFails(t *testing.T) {
	planted := errors.New("planted")
	var file bytes.Buffer
	err := WriteBackup(&file, sampleInfo(), func(w io.Writer) error { return errors.Join(errorOf(w.Write(sampleState())), planted) })
	if _, _, readErr := readBackup(&file); !errors.Is(err, planted) || readErr == nil {
		t.Errorf("%v; the file is read: %v", err, readErr)
	}
	n := 1
	for ; ; n++ {
		f := &failingIO{left: n}
		err := WriteBackup(f, sampleInfo(), func(w io.Writer) error { return errorOf(w.Write(sampleState())) })
		if f.left > 0 {
			must(t, err)
			break
		}
		if !errors.Is(err, errPlanted) {
			t.Errorf("write %d failed: %v", n, err)
		}
	}
	data := sampleBackup(t, sampleState())
	for k := 1; ; k++ {
		f := &failingIO{left: k, from: bytes.NewReader(data)}
		_, _, err := readBackup(f)
		if f.left > 0 {
			must(t, err)
			break
		}
		if !errors.Is(err, errPlanted) {
			t.Errorf("read %d failed: %v", k, err)
		}
	}
	if n < 3 {
		t.Errorf("%d writes", n)
	}
}

// failingIO is a reader and writer whose operation number left fails.
type failingIO struct {
	left int
	from io.Reader
}

var errPlanted = errors.New("planted")

func (f *failingIO) Write(p []byte) (int, error) {
	if f.left--; f.left == 0 {
		return 0, errPlanted
	}
	return len(p), nil
}

func (f *failingIO) Read(p []byte) (int, error) {
	if f.left--; f.left == 0 {
		return 0, errPlanted
	}
	return f.from.Read(p)
}

// TestStoppedState reads the newest snapshot of a log that is not in use. It must cover every record.
func TestStoppedState(t *testing.T) {
	dir := filepath.Join(scratch(t), "log")
	l := mustOpen(t, dir, testOptions())
	if _, _, err := StoppedState(dir); !errors.Is(err, ErrLocked) {
		t.Errorf("a log in use: %v", err)
	}
	read := func(when string, want uint64, content string) {
		t.Helper()
		before := hashDir(t, dir)
		sequence, state, err := StoppedState(dir)
		must(t, err)
		got, err := io.ReadAll(state)
		if err = errors.Join(err, state.Close()); err != nil || sequence != want || string(got) != content || hashDir(t, dir) != before {
			t.Errorf("%s: %q after %d, %v", when, got, sequence, err)
		}
	}
	mustClose(t, l)
	read("no record", 0, "")
	l = mustOpen(t, dir, testOptions())
	mustAppend(t, l, 20)
	mustClose(t, l)
	if _, _, err := StoppedState(dir); !errors.Is(err, ErrUncovered) {
		t.Errorf("no snapshot: %v", err)
	}
	l = mustOpen(t, dir, testOptions())
	mustSnapshot(t, l, l.Last())
	last := l.Last()
	mustClose(t, l)
	read("all in a snapshot", last, fmt.Sprint("state ", last))
	l = mustOpen(t, dir, testOptions())
	mustAppend(t, l, 1)
	mustClose(t, l)
	if _, _, err := StoppedState(dir); !errors.Is(err, ErrUncovered) {
		t.Errorf("a record after the snapshot: %v", err)
	}
}

// TestCopyFiles_WhileInUse copies a log while records are appended, snapshots taken and segments dropped. Each
// complete copy opens with every record that was on disk before it began.
func TestCopyFiles_WhileInUse(t *testing.T) {
	l := mustOpen(t, filepath.Join(scratch(t), "log"), testOptions())
	copies, vanished := 0, 0
	for round := range sampleSize(40, 400) {
		mustAppend(t, l, 5)
		before := l.Last()
		dir := filepath.Join(scratch(t), "copy")
		must(t, os.Mkdir(dir, 0o700))
		files := 0
		err := CopyFiles(l.dir, func(name string, data io.Reader) error {
			if files++; files == 1+round%4 {
				mustAppend(t, l, 5)
				if round%2 == 0 {
					mustSnapshot(t, l, l.Last())
					must(t, l.DropBefore(l.Last()+1))
				}
			}
			content, err := io.ReadAll(data)
			return errors.Join(err, os.WriteFile(filepath.Join(dir, name), content, 0o600))
		})
		if errors.Is(err, os.ErrNotExist) {
			vanished++
			continue
		}
		must(t, err)
		c := mustOpen(t, dir, testOptions())
		if wantWhole(t, c); c.Last() < before {
			t.Errorf("round %d: the copy ends with %d, %d was on disk", round, c.Last(), before)
		}
		mustClose(t, c)
		copies++
	}
	if t.Logf("%d copies, %d with a file that vanished", copies, vanished); copies < 5 || vanished == 0 {
		t.Error("something was never tried")
	}
	mustClose(t, l)
}
