package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tasard/tasard/wal"
)

// testBackup is a backup of a state after record 20.
func testBackup(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	err := wal.WriteBackup(&b, wal.BackupInfo{Sequence: 20}, func(w io.Writer) error {
		_, err := io.WriteString(w, strings.Repeat("state ", 1000))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// logState reports whether a directory has the old log, the new one, or neither.
func logState(t testing.TB, dir string) string {
	t.Helper()
	log, err := wal.Open(dir, wal.Options{ReserveBytes: -1, Clock: realClock})
	if err != nil {
		return "damage"
	}
	defer log.Close()
	sequence, r, ok, err := log.Snapshot()
	switch {
	case err != nil:
		t.Fatal(err)
	case !ok && log.Last() == 2:
		return "old"
	case ok && sequence == 20 && log.Last() == 20:
		state, err := io.ReadAll(r)
		if err = errors.Join(err, r.Close()); err != nil || !strings.HasSuffix(string(state), "state ") || len(state) != 6000 {
			t.Fatalf("the state is %q, %v", state, err)
		}
		return "new"
	}
	return fmt.Sprintf("%d records", log.Last())
}

// TestInstall_Crash interrupts an installation after it has removed files of the old log; the next start finishes it.
// package wal tests each step of the replacement.
func TestInstall_Crash(t *testing.T) {
	for removed := range 3 {
		dir := t.TempDir()
		appendOutside(t, dir, "1", "2")
		old, err := wal.Files(dir)
		err = errors.Join(err, receiveBackup(dir, bytes.NewReader(testBackup(t)), 20))
		for _, f := range old[:removed] {
			err = errors.Join(err, os.Remove(f))
		}
		incomplete := filepath.Join(dir, "."+incomingName+".1.tmp")
		if err := errors.Join(err, os.WriteFile(incomplete, nil, 0o600), install(dir)); err != nil {
			t.Fatal(err)
		}
		if got := logState(t, dir); got != "new" {
			t.Errorf("%d of the old removed: the directory holds %s", removed, got)
		}
		if left, err := filepath.Glob(filepath.Join(dir, "*incoming*")); err != nil || len(left) > 0 {
			t.Errorf("left: %q, %v", left, err)
		}
	}
}

// TestInstall_Torn receives truncated and changed backups, and one without a record that is needed: the old log stays.
func TestInstall_Torn(t *testing.T) {
	backup, needed := testBackup(t), uint64(21)
	changed := bytes.Clone(backup)
	changed[len(changed)/2] ^= 1
	for _, content := range [][]byte{backup, backup[:len(backup)-1], backup[:len(backup)/2], changed, nil} {
		dir := t.TempDir()
		appendOutside(t, dir, "1", "2")
		if err := receiveBackup(dir, bytes.NewReader(content), needed); err == nil {
			t.Errorf("%d bytes: taken", len(content))
		}
		if err := install(dir); err != nil {
			t.Error(err)
		}
		if got := logState(t, dir); got != "old" {
			t.Errorf("%d bytes: the directory holds %s", len(content), got)
		}
		needed = 20
	}
}
