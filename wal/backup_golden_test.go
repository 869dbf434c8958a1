package wal

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tarEntry is a file in the stream of a backup.
type tarEntry struct {
	name string
	data []byte
}

// unpacked is the files in the backup of a sample log.
func unpacked(t *testing.T) []tarEntry {
	t.Helper()
	l := sampleLog(t, filepath.Join(scratch(t), "log"))
	var stream bytes.Buffer
	_, err := l.Backup(&stream, BackupOptions{Clock: testClock, Program: "v1.2.3"})
	must(t, err)
	mustClose(t, l)
	var all []tarEntry
	for r := tar.NewReader(&stream); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		must(t, err)
		data, err := io.ReadAll(r)
		must(t, err)
		all = append(all, tarEntry{header.Name, data})
	}
}

func packed(t *testing.T, all []tarEntry) []byte {
	t.Helper()
	var stream bytes.Buffer
	w := tar.NewWriter(&stream)
	for _, e := range all {
		must(t, w.WriteHeader(&tar.Header{Name: e.name, Size: int64(len(e.data)), Mode: 0o600, Typeflag: tar.TypeReg}))
		_, err := w.Write(e.data)
		must(t, err)
	}
	must(t, w.Close())
	return stream.Bytes()
}

// changeFile changes the data of one file.
func changeFile(at int, change func(data []byte) []byte) func([]tarEntry) []tarEntry {
	return func(all []tarEntry) []tarEntry {
		all[at].data = change(bytes.Clone(all[at].data))
		return all
	}
}

func changeManifest(change func(info *BackupInfo)) func([]tarEntry) []tarEntry {
	return changeFile(0, func(data []byte) []byte {
		var info BackupInfo
		_ = json.Unmarshal(data, &info)
		change(&info)
		data, _ = json.Marshal(info)
		return data
	})
}

func flipped(at int) func([]byte) []byte {
	return func(data []byte) []byte {
		data[at] ^= 1
		return data
	}
}

// newerSlot gives a slot of the mark a newer format version.
func newerSlot(data []byte) []byte {
	data[4] = 9
	binary.LittleEndian.PutUint32(data[markSlotBytes-4:], checksum(data[:markSlotBytes-4]))
	return data
}

// damagedStream is one way to damage the files of a backup.
type damagedStream struct {
	name string
	do   func(all []tarEntry) []tarEntry
}

// damagedStreams is many of them; last is the index of the last file.
func damagedStreams(last int) []damagedStream {
	without := func(at int) func([]tarEntry) []tarEntry {
		return func(all []tarEntry) []tarEntry { return slices.Delete(all, at, at+1) }
	}
	return []damagedStream{
		{"as it is", func(all []tarEntry) []tarEntry { return all }},
		{"no file", func([]tarEntry) []tarEntry { return nil }},
		{"one file", func(all []tarEntry) []tarEntry { return all[:1] }},
		{"two files", func(all []tarEntry) []tarEntry { return all[:2] }},
		{"the mark first", func(all []tarEntry) []tarEntry { return append([]tarEntry{all[1], all[0]}, all[2:]...) }},
		{"no JSON", changeFile(0, func([]byte) []byte { return []byte("first: 1") })},
		{"too much JSON", changeFile(0, func([]byte) []byte { return make([]byte, manifestBytesMax+1) })},
		{"as much as may be", changeFile(0, func([]byte) []byte { return make([]byte, manifestBytesMax) })},
		{"a newer format", changeManifest(func(i *BackupInfo) { i.Format++ })},
		{"half a mark", changeFile(1, func(data []byte) []byte { return data[:markSlotBytes] })},
		{"less than half a mark", changeFile(1, func(data []byte) []byte { return data[:markSlotBytes-1] })},
		{"a mark and more", changeFile(1, func(data []byte) []byte { return append(data, 0) })},
		{"a flip in the first slot of the mark", changeFile(1, flipped(20))},
		{"a flip in the second", changeFile(1, flipped(markSlotBytes+20))},
		{"a newer mark", changeFile(1, newerSlot)},
		{"a flip at the start of the snapshot", changeFile(2, flipped(0))},
		{"a flip in its sequence", changeFile(2, flipped(8))},
		{"a flip in its state", changeFile(2, flipped(30))},
		{"half of it", changeFile(2, func(data []byte) []byte { return data[:len(data)/2] })},
		{"a byte behind it", changeFile(2, func(data []byte) []byte { return append(data, 0) })},
		{"it has another name", func(all []tarEntry) []tarEntry { all[2].name = filepath.Base(snapshotPath("", 84)); return all }},
		{"no snapshot", without(2)},
		{"two snapshots", func(all []tarEntry) []tarEntry { return slices.Insert(all, 3, all[2]) }},
		{"a snapshot behind a segment", func(all []tarEntry) []tarEntry { all[2], all[3] = all[3], all[2]; return all }},
		{"a flip in the first segment", changeFile(3, flipped(40))},
		{"a flip in the last one", changeFile(last, flipped(40))},
		{"a byte behind the last one", changeFile(last, func(data []byte) []byte { return append(data, 'x') })},
		{"nothing in the last one", changeFile(last, func([]byte) []byte { return nil })},
		{"no first segment", without(3)},
		{"no second segment", without(4)},
		{"no last segment", without(last)},
		{"another file", func(all []tarEntry) []tarEntry { return append(all, tarEntry{"notes.txt", []byte("x")}) }},
	}
}

// TestGolden_BackupsRefused compares the error for each damaged stream. The files are, in this order, manifest, mark,
// snapshot and segments.
func TestGolden_BackupsRefused(t *testing.T) {
	report := &goldenReport{dir: "/none"}
	names := []string{}
	for _, e := range unpacked(t) {
		names = append(names, fmt.Sprintf("%s %d", e.name, len(e.data)))
	}
	report.line("files: %q", names)
	for _, c := range damagedStreams(len(names) - 1) {
		stream := packed(t, c.do(unpacked(t)))
		_, err := PackBackup(bytes.NewReader(stream), io.Discard, BackupVisitor{})
		report.line("%s: %v", c.name, err)
	}
	whole := packed(t, unpacked(t))
	_, err := PackBackup(bytes.NewReader(bytes.Repeat([]byte("no tar "), 100)), io.Discard, BackupVisitor{})
	report.line("no tar: %v", err)
	const paddingAndEnd = 512 + 1024
	for at := 0; at < len(whole)-paddingAndEnd; at += sampleSize(29, 1) {
		if _, err := PackBackup(bytes.NewReader(whole[:at]), io.Discard, BackupVisitor{}); err == nil {
			t.Errorf("cut at %d, and taken for whole", at)
		}
	}
	report.reportHeaders(t)
	report.golden(t, "backups.txt")
}

// TestW11_GoldenBackup2 reads a fixture of format version 2. It is never replaced, also not with -update; a later
// format gets its own.
func TestW11_GoldenBackup2(t *testing.T) {
	fixture := filepath.Join("testdata", "backup-v2.tasard")
	if _, err := os.Stat(fixture); *update && errors.Is(err, os.ErrNotExist) {
		l := sampleLog(t, filepath.Join(scratch(t), "log"))
		backup, _ := backupOf(t, l, BackupOptions{Program: "v1.0.0"})
		mustClose(t, l)
		must(t, os.WriteFile(fixture, backup, 0o644))
	}
	backup, err := os.ReadFile(fixture)
	must(t, err)
	info, err := VerifyBackup(bytes.NewReader(backup), "b", BackupVisitor{})
	must(t, err)
	want := BackupInfo{
		Format: 2, Program: "v1.0.0", TakenAt: testClock().UTC(), Last: 180, Snapshot: 175,
	}
	if info != want {
		t.Errorf("%+v, want %+v", info, want)
	}
	must(t, restored(filepath.Join(scratch(t), "r"), backup, info))
}

// TestW6_EachFailureOfARestoreIsReported makes each single operation of a restore fail, and of its removal after
// an error.
func TestW6_EachFailureOfARestoreIsReported(t *testing.T) {
	backup, info := sampleBackup(t)
	for _, kind := range []string{"sync", "syncDir", "write"} {
		dir := ""
		fired := eachFailure(t, kind, func(o Options) error {
			dir = filepath.Join(scratch(t), "r")
			return errorOf(RestoreBackup(bytes.NewReader(backup), "b", dir, o, BackupVisitor{}))
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
	_, err := RestoreBackup(bytes.NewReader(backup), "b", dir, o, BackupVisitor{Record: func(sequence uint64, _ []byte) error {
		if sequence == info.Last {
			return planted
		}
		return nil
	}})
	if !errors.Is(err, errDisk) || !errors.Is(err, planted) || !strings.Contains(err.Error(), "remove the partly restored files: ") {
		t.Errorf("undo: %v", err)
	}
	if _, err := Open(dir, testOptions()); err == nil {
		t.Error("half a restore is served")
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

// TestBackup_PlacesThatFail makes each single read and write of a backup fail: the result is that error, never a
// backup.
func TestBackup_PlacesThatFail(t *testing.T) {
	l := sampleLog(t, filepath.Join(scratch(t), "log"))
	backup, info := backupOf(t, l, BackupOptions{})
	var stream bytes.Buffer
	_, err := l.Backup(&stream, BackupOptions{Clock: testClock})
	must(t, err)
	for _, c := range []struct {
		name string
		from []byte
		do   func(f *failingIO) (BackupInfo, error)
	}{
		{"copy", nil, func(f *failingIO) (BackupInfo, error) { return l.Backup(f, BackupOptions{Clock: testClock}) }},
		{"pack a stream", stream.Bytes(), func(f *failingIO) (BackupInfo, error) { return PackBackup(f, io.Discard, BackupVisitor{}) }},
		{"pack into a file", nil, func(f *failingIO) (BackupInfo, error) {
			return PackBackup(bytes.NewReader(stream.Bytes()), f, BackupVisitor{})
		}},
		{"verify", backup, func(f *failingIO) (BackupInfo, error) { return VerifyBackup(f, "b", BackupVisitor{}) }},
		{"restore", backup, func(f *failingIO) (BackupInfo, error) {
			return RestoreBackup(f, "b", filepath.Join(scratch(t), "r"), testOptions(), BackupVisitor{})
		}},
	} {
		n := 1
		for ; ; n++ {
			f := &failingIO{left: n, from: bytes.NewReader(c.from)}
			found, err := c.do(f)
			if f.left > 0 {
				if err != nil || found != info {
					t.Errorf("%s fails by itself: %+v, %v", c.name, found, err)
				}
				break
			}
			if !errors.Is(err, errPlanted) {
				t.Errorf("%s: operation %d failed: %v", c.name, n, err)
			}
		}
		if t.Logf("%s: %d operations failed in turn", c.name, n-1); n == 1 {
			t.Errorf("%s: nothing failed", c.name)
		}
	}
	mustClose(t, l)
}
