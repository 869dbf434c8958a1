package wal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
)

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

// TestW11_GoldenBackup2: a backup of format version 2 is refused, with a message that names the program to use. The
// fixture is never replaced.
func TestW11_GoldenBackup2(t *testing.T) {
	file, err := os.Open(filepath.Join("testdata", "backup-v2.tasard"))
	must(t, err)
	defer file.Close()
	_, _, err = readBackup(file)
	var format *FormatError
	if !errors.As(err, &format) || format.Version != 2 || !strings.Contains(err.Error(), "use the older tasard that wrote it") {
		t.Error(err)
	}
}

// TestW11_GoldenBackup3 reads a fixture of format version 3. It is never replaced, also not with -update; a later
// format gets its own.
func TestW11_GoldenBackup3(t *testing.T) {
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
		err := CopyFiles(l.dir, func(name string, bytes int64, data io.Reader) error {
			if files++; files == 1+round%4 {
				mustAppend(t, l, 5)
				if round%2 == 0 {
					mustSnapshot(t, l, l.Last())
					must(t, l.DropBefore(l.Last()+1))
				}
			}
			content, err := io.ReadAll(data)
			if int64(len(content)) != bytes {
				t.Errorf("%s has %d bytes, want %d", name, len(content), bytes)
			}
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
