package wal

import (
	"errors"
	"io"
	"testing"
)

func TestSnapshotSequences(t *testing.T) {
	l := mustOpen(t, t.TempDir(), testOptions())
	defer mustClose(t, l)
	mustAppend(t, l, 5)
	mustSnapshot(t, l, 3)
	never := func(io.Writer) error { t.Error("written"); return nil }
	for name, seq := range map[string]uint64{"zero": 0, "not on disk": l.Last() + 1, "older": 2} {
		if err := l.WriteSnapshot(seq, never); err == nil || errors.Is(err, ErrPoisoned) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := l.WriteSnapshot(3, never); err != nil {
		t.Errorf("the same again: %v", err)
	}
	mustAppend(t, l, 1)
}

func TestSnapshotWriterFails(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, testOptions())
	defer mustClose(t, l)
	mustAppend(t, l, 5)
	before := hashDir(t, dir)
	cause := errors.New("state is odd")
	err := l.WriteSnapshot(2, func(w io.Writer) error {
		_, _ = w.Write(make([]byte, 200_000))
		return cause
	})
	if !errors.Is(err, cause) || errors.Is(err, ErrPoisoned) || hashDir(t, dir) != before {
		t.Errorf("got %v", err)
	}
	mustSnapshot(t, l, 2)
}

// compacted is a log with two snapshots whose oldest segments were dropped.
func compacted(t testing.TB, dir string) (older, newer uint64) {
	t.Helper()
	l := mustOpen(t, dir, testOptions())
	defer mustClose(t, l)
	mustAppend(t, l, 40)
	older = l.Last()
	mustSnapshot(t, l, older)
	must(t, l.DropBefore(older))
	if l.First() != 1 {
		t.Fatal("dropped what a damaged only snapshot would need")
	}
	mustAppend(t, l, 40)
	newer = l.Last()
	mustSnapshot(t, l, newer)
	must(t, l.DropBefore(newer))
	if l.First() == 1 || l.First() > older+1 {
		t.Fatalf("begins with %d, older snapshot %d", l.First(), older)
	}
	mustAppend(t, l, 3)
	return older, newer
}
