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
	"testing"
)

// sampleLog is an open log with several segments and two snapshots.
func sampleLog(t testing.TB, dir string) *Log {
	t.Helper()
	l := mustOpen(t, dir, testOptions())
	for range 3 {
		mustAppend(t, l, 30)
		mustSnapshot(t, l, l.Last()-5)
		must(t, l.DropBefore(l.Last()))
	}
	return l
}

// backupOf is a backup file of an open log.
func backupOf(t testing.TB, l *Log, o BackupOptions) ([]byte, BackupInfo) {
	t.Helper()
	o.Clock = testClock
	var stream, file bytes.Buffer
	info, err := l.Backup(&stream, o)
	must(t, err)
	packed, err := PackBackup(&stream, &file, BackupVisitor{})
	if err != nil || packed != info {
		t.Fatalf("packed %+v of %+v: %v", packed, info, err)
	}
	return file.Bytes(), info
}

// sampleBackup is a backup file of a sample log.
func sampleBackup(t testing.TB) ([]byte, BackupInfo) {
	t.Helper()
	l := sampleLog(t, filepath.Join(scratch(t), "log"))
	backup, info := backupOf(t, l, BackupOptions{})
	mustClose(t, l)
	return backup, info
}

// restored restores a backup and checks the result.
func restored(dir string, backup []byte, want BackupInfo) error {
	o := testOptions()
	info, err := RestoreBackup(bytes.NewReader(backup), "b", dir, o, BackupVisitor{})
	if err != nil || info != want {
		return fmt.Errorf("restored %+v: %w", info, err)
	}
	l, err := Open(dir, o)
	if err != nil {
		return err
	}
	if r := l.Recovery(); l.Last() != want.Last || r.SnapshotSequence != want.Snapshot || r.Mark != MarkWhole || r.AmbiguousTail || r.TornBytes > 0 {
		return fmt.Errorf("a start finds %+v, want %+v", r, want)
	}
	if err := checkLog(l); err != nil {
		return err
	}
	if _, err := l.Append(batchFrom(l.Last()+1, 3)); err != nil {
		return err
	}
	return l.Close()
}

// backupDir backs up a directory that is not open, and restores it.
func backupDir(t *testing.T, dir string) (BackupInfo, error) {
	t.Helper()
	var file bytes.Buffer
	out, err := NewBackupFile(&file)
	must(t, err)
	info, err := Backup(dir, out, BackupOptions{Clock: testClock})
	return info, errors.Join(err, out.Close(), restored(filepath.Join(scratch(t), "r"), file.Bytes(), info))
}

// TestBackup_Restores restores a backup of a log in many states, and of its directory.
func TestBackup_Restores(t *testing.T) {
	dir := filepath.Join(scratch(t), "log")
	l := mustOpen(t, dir, testOptions())
	seen := 0
	look := func(what string) {
		backup, info := backupOf(t, l, BackupOptions{})
		if info.Last != l.Last() {
			t.Errorf("%s: a backup up to %d of a log up to %d", what, info.Last, l.Last())
		}
		seen++
		if err := restored(filepath.Join(scratch(t), "r"), backup, info); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	look("an empty log")
	for round := range 3 {
		for i := range 20 {
			mustAppend(t, l, 1)
			look(fmt.Sprintf("round %d, batch %d", round, i))
		}
		mustSnapshot(t, l, l.Last())
		look("a snapshot of everything")
		must(t, l.DropBefore(l.Last()))
		look("dropped")
	}
	mustClose(t, l)
	before := hashDir(t, dir)
	if _, err := backupDir(t, dir); err != nil || hashDir(t, dir) != before {
		t.Fatalf("a directory at rest: %v, changed %t", err, hashDir(t, dir) != before)
	}
	t.Logf("%d backups restored", seen+1)
}

func TestBackup_AtRestWithATornTail(t *testing.T) {
	dir := filepath.Join(scratch(t), "log")
	l := sampleLog(t, dir)
	if _, err := Backup(dir, io.Discard, BackupOptions{Clock: testClock}); !errors.Is(err, ErrLocked) {
		t.Errorf("of a log in use: %v", err)
	}
	last := l.Last()
	mustClose(t, l)
	all := readFiles(t, dir)
	tail := lastWithFrames(all)
	all[tail] = append(all[tail], entry(l.next, record(last+1))[:20]...)
	writeFiles(t, dir, all)
	before := hashDir(t, dir)
	if info, err := backupDir(t, dir); err != nil || info.Last != last || hashDir(t, dir) != before {
		t.Fatalf("up to %d, want %d: %v", info.Last, last, err)
	}
}

func TestBackup_UnderLoad(t *testing.T) {
	l := mustOpen(t, filepath.Join(scratch(t), "log"), testOptions())
	var enough bool
	done, stop := make(chan error, 1), make(chan struct{})
	go func() { done <- keepChanging(l, stop) }()
	total, dropped := 0, uint64(0)
	for !enough {
		before := l.Last()
		backup, info := backupOf(t, l, BackupOptions{})
		if info.Last < before {
			t.Errorf("a backup up to %d misses %d, which was on disk before", info.Last, before)
		}
		if err := restored(filepath.Join(scratch(t), "r"), backup, info); err != nil {
			t.Error(err)
		}
		total++
		dropped = l.First()
		enough = total >= 30 && dropped > 200 || t.Failed() || total > 2000
	}
	close(stop)
	if err := <-done; err != nil {
		t.Error(err)
	}
	mustClose(t, l)
	t.Logf("%d backups while records up to %d were written and those before %d dropped", total, l.Last(), dropped)
	if dropped <= 200 {
		t.Error("nothing was dropped meanwhile")
	}
}

// keepChanging appends, takes snapshots and drops segments until stop is closed.
func keepChanging(l *Log, stop chan struct{}) error {
	chance := rand.New(rand.NewPCG(1, 2))
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		last, err := l.Append(batchFrom(l.Last()+1, 1+chance.IntN(5)))
		if err != nil {
			return err
		}
		if chance.IntN(10) == 0 {
			if err := errors.Join(l.WriteSnapshot(last, stateAt(last)), l.DropBefore(last)); err != nil {
				return err
			}
		}
	}
}

// growPastBackup takes three snapshots: without a pin, files being copied would be removed.
func growPastBackup(t *testing.T, l *Log) {
	t.Helper()
	for range 3 {
		mustAppend(t, l, 30)
		mustSnapshot(t, l, l.Last())
		must(t, l.DropBefore(l.Last()))
	}
}

// TestBackup_DoesNotBlock changes a log in the middle of its backup. The files being copied stay, and are dropped
// after the backup.
func TestBackup_DoesNotBlock(t *testing.T) {
	dir := filepath.Join(scratch(t), "log")
	l := sampleLog(t, dir)
	var once bool
	before, during := l.First(), uint64(0)
	backup, info := backupOf(t, l, BackupOptions{Throttle: func(int) error {
		if !once {
			once = true
			growPastBackup(t, l)
			during = l.First()
		}
		return nil
	}})
	if err := restored(filepath.Join(scratch(t), "r"), backup, info); err != nil {
		t.Error(err)
	}
	growPastBackup(t, l)
	if during < before || during > info.Snapshot+1 || l.First() <= info.Last || len(l.snapshots) != snapshotsKept || len(l.pins) != 0 {
		t.Errorf("the log began at %d, %d while it was copied up to %d, and %d afterwards; %d snapshots are left", before, during, info.Last, l.First(), len(l.snapshots))
	}
	mustClose(t, l)
}

// TestBackup_ErrorsEndIt returns errors of Throttle and of the visitor.
func TestBackup_ErrorsEndIt(t *testing.T) {
	l := sampleLog(t, filepath.Join(scratch(t), "log"))
	planted := errors.New("planted")
	for name, o := range map[string]BackupOptions{
		"pace":     {Throttle: func(int) error { return planted }},
		"record":   {Visit: BackupVisitor{Record: func(uint64, []byte) error { return planted }}},
		"snapshot": {Visit: BackupVisitor{Snapshot: func(uint64, io.Reader) error { return planted }}},
	} {
		o.Clock = testClock
		if _, err := l.Backup(io.Discard, o); !errors.Is(err, planted) || len(l.pins) != 0 {
			t.Errorf("%s: %v, %d pins", name, err, len(l.pins))
		}
	}
	mustClose(t, l)
	if _, err := l.Backup(io.Discard, BackupOptions{Clock: testClock}); !errors.Is(err, ErrClosed) {
		t.Errorf("of a closed log: %v", err)
	}
}

// TestBackup_NeverCopiesDamage flips bytes of the files of an open log: the backup fails, or does not contain the
// byte.
func TestBackup_NeverCopiesDamage(t *testing.T) {
	dir := filepath.Join(scratch(t), "log")
	l := sampleLog(t, dir)
	_, want := backupOf(t, l, BackupOptions{})
	refused, passed, step := 0, 0, sampleSize(23, 1)
	for name, data := range readFiles(t, dir) {
		for at := 0; at < len(data); at += step {
			changed := bytes.Clone(data)
			changed[at] ^= 0x10
			must(t, os.WriteFile(filepath.Join(dir, name), changed, 0o600))
			var stream bytes.Buffer
			info, err := l.Backup(&stream, BackupOptions{Clock: testClock})
			var damage *DamageError
			var newer *FormatError
			switch {
			case errors.As(err, &damage), errors.As(err, &newer):
				refused++
			case err != nil || info != want:
				t.Errorf("%s at %d: %v", name, at, err)
			default:
				passed++
				if _, err := PackBackup(&stream, io.Discard, BackupVisitor{}); err != nil {
					t.Errorf("%s at %d was copied: %v", name, at, err)
				}
			}
		}
		must(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	t.Logf("%d flips refused, %d in what is not copied", refused, passed)
	if refused < 500/step {
		t.Error("hardly anything was refused")
	}
	mustClose(t, l)
}

// TestBackup_EveryFlipAndCutIsRefused changes each byte of a backup and cuts it at each: the error names the place
// and nothing is restored.
func TestBackup_EveryFlipAndCutIsRefused(t *testing.T) {
	backup, _ := sampleBackup(t)
	dir := filepath.Join(scratch(t), "r")
	check := func(what string, changed []byte) {
		info, err := RestoreBackup(bytes.NewReader(changed), "b", dir, testOptions(), BackupVisitor{})
		var damage *DamageError
		var format *FormatError
		switch named := errors.As(err, &damage); {
		case named && damage.Found != "" && (damage.Expected != "" || damage.Offset == 0) && strings.HasPrefix(damage.File, "b"):
		case errors.As(err, &format) && format.File == "b" && strings.HasPrefix(what, fmt.Sprintf("byte %d ", archiveVersionOffset)):
		default:
			t.Errorf("%s: %+v, %v", what, info, err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("%s: something is left: %v", what, err)
		}
	}
	for at := 0; at < len(backup); at += sampleSize(5, 1) {
		for _, mask := range []byte{0x01, 0x80, 0xff} {
			changed := bytes.Clone(backup)
			changed[at] ^= mask
			check(fmt.Sprintf("byte %d ^ %02x", at, mask), changed)
		}
		check(fmt.Sprintf("cut at %d", at), backup[:at])
	}
	check("a byte more", append(bytes.Clone(backup), 0))
	check("twice", append(bytes.Clone(backup), backup...))
	t.Logf("%d flips and %d cuts refused", 3*len(backup), len(backup))
}
