package cluster

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tasard/tasard/wal"
)

// packedLog packs a log with a snapshot and records in several segments.
func packedLog(t testing.TB, c *Config) string {
	t.Helper()
	o := wal.Options{ReserveBytes: -1, SegmentBytes: 1 << 10, Clock: c.Clock}
	dir := t.TempDir()
	log, err := wal.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for k := range 20 {
		if _, err := log.Append([][]byte{fmt.Appendf(nil, "new %d %s", k+1, strings.Repeat("x", 300))}); err != nil {
			t.Fatal(err)
		}
		if k == 9 {
			if err := log.WriteSnapshot(10, func(w io.Writer) error { _, err := io.WriteString(w, "state"); return err }); err != nil {
				t.Fatal(err)
			}
		}
	}
	var b strings.Builder
	if err := packLog(dir, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// logState reports whether a directory has the old log, the new one, or neither.
func logState(t testing.TB, c *Config) string {
	t.Helper()
	log, err := wal.Open(c.Dir, c.Log)
	if err != nil {
		return "damage"
	}
	defer log.Close()
	switch log.Last() {
	case 2:
		return "old"
	case 20:
		sequence, r, ok, err := log.Snapshot()
		if err != nil || !ok || sequence != 10 {
			t.Fatalf("snapshot at %d, %v", sequence, err)
		}
		r.Close()
		return "new"
	}
	return fmt.Sprintf("%d records", log.Last())
}

// TestInstall_Crash interrupts an installation after each step; the next start finishes it.
func TestInstall_Crash(t *testing.T) {
	c := valid()
	c.Log = wal.Options{ReserveBytes: -1, Clock: c.Clock}
	packed := packedLog(t, &c)
	begin := func(t *testing.T) (old, fresh []string) {
		c.Dir = t.TempDir()
		appendOutside(t, c.Dir, "1", "2")
		if _, err := receiveLog(&c, strings.NewReader(packed)); err != nil {
			t.Fatal(err)
		}
		return filesOf(t, c.Dir), filesOf(t, filepath.Join(c.Dir, incomingName))
	}
	finish := func(t *testing.T, when string) {
		if err := install(c.Dir); err != nil {
			t.Fatal(err)
		}
		if got := logState(t, &c); got != "new" {
			t.Errorf("%s: the directory holds %s", when, got)
		}
		for _, name := range []string{incomingPartialName, incomingName, installName} {
			if exists(filepath.Join(c.Dir, name)) {
				t.Errorf("%s: %s is left", when, name)
			}
		}
	}
	old, fresh := begin(t)
	for removed := range len(old) + 1 {
		old, _ := begin(t)
		for _, f := range old[:removed] {
			if err := os.Remove(f); err != nil {
				t.Fatal(err)
			}
		}
		finish(t, fmt.Sprint(removed, " of the old removed"))
	}
	for moved := range len(fresh) + 1 {
		begin(t)
		from := filepath.Join(c.Dir, installName)
		if err := errors.Join(removeLog(c.Dir), os.Rename(filepath.Join(c.Dir, incomingName), from)); err != nil {
			t.Fatal(err)
		}
		for _, f := range filesOf(t, from)[:moved] {
			if err := os.Rename(f, filepath.Join(c.Dir, filepath.Base(f))); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := wal.Verify(c.Dir); err == nil && moved > 0 && moved < len(fresh)-1 {
			t.Errorf("a log of which %d of %d files are there is taken for whole", moved, len(fresh))
		}
		finish(t, fmt.Sprint(moved, " of the new moved"))
	}
	if len(old) == 0 || len(fresh) < 4 {
		t.Errorf("steps of %d and %d files", len(old), len(fresh))
	}
}

func filesOf(t testing.TB, dir string) []string {
	t.Helper()
	files, err := wal.Files(dir)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestInstall_Torn receives truncated and changed archives: the old log stays.
func TestInstall_Torn(t *testing.T) {
	c := valid()
	c.Log = wal.Options{ReserveBytes: -1, Clock: c.Clock}
	packed := packedLog(t, &c)
	changed := []byte(packed)
	changed[len(changed)/2] ^= 1
	for name, text := range map[string]string{"short": packed[:len(packed)-1025], "without its end": packed[:len(packed)-1024-512], "half": packed[:len(packed)/2], "changed": string(changed), "empty": ""} {
		c.Dir = t.TempDir()
		appendOutside(t, c.Dir, "1", "2")
		if _, err := receiveLog(&c, strings.NewReader(text)); err == nil {
			t.Errorf("%s: taken", name)
		}
		if err := install(c.Dir); err != nil {
			t.Error(err)
		}
		if got := logState(t, &c); got != "old" {
			t.Errorf("%s: the directory holds %s", name, got)
		}
	}
}
