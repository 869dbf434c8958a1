package wal

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"
)

func TestEmptyLog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	l := mustOpen(t, dir, testOptions())
	if l.First() != 1 || l.Last() != 0 {
		t.Errorf("first %d last %d", l.First(), l.Last())
	}
	if _, _, ok, err := l.Snapshot(); ok || err != nil {
		t.Errorf("snapshot of nothing: %v %v", ok, err)
	}
	if last, err := l.Append(nil); last != 0 || err != nil {
		t.Errorf("empty batch: %d %v", last, err)
	}
	wantWhole(t, l)
	mustClose(t, l)
	mustClose(t, l)
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if r := mustOpenRecovery(t, dir); r.Mark != MarkWhole || r.AmbiguousTail || r.Last != 0 {
		t.Errorf("second open: %+v", r)
	}
}

func mustOpenRecovery(t *testing.T, dir string) Recovery {
	t.Helper()
	l := mustOpen(t, dir, testOptions())
	defer mustClose(t, l)
	return l.Recovery()
}

func TestOptionsAreChecked(t *testing.T) {
	for name, o := range map[string]Options{
		"no clock":       {},
		"negative size":  {Clock: testClock, SegmentBytes: -1},
		"segments large": {Clock: testClock, SegmentBytes: segmentBytesMax + 1},
	} {
		if _, err := Open(t.TempDir(), o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestReadFromTheMiddle(t *testing.T) {
	l := mustOpen(t, t.TempDir(), testOptions())
	defer mustClose(t, l)
	mustAppend(t, l, 40)
	for from := uint64(1); from <= l.Last()+2; from++ {
		next := from
		err := l.Read(from, func(seq uint64, got []byte) error {
			if seq != next || !bytes.Equal(got, record(seq)) {
				t.Fatalf("from %d: record %d is %d %q", from, next, seq, got)
			}
			next++
			return nil
		})
		if err != nil || next != max(from, l.Last()+1) {
			t.Fatalf("from %d: ended before %d, %v", from, next, err)
		}
	}
	if err := l.Read(0, func(uint64, []byte) error { return nil }); err == nil {
		t.Error("read before the first record")
	}
	stop := errors.New("stop")
	if err := l.Read(3, func(uint64, []byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("visitor's error became %v", err)
	}
}

func flip(t testing.TB, path string, at, bit int) {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	data[at] ^= 1 << bit
	must(t, os.WriteFile(path, data, 0o600))
}

func TestClosedLogRefuses(t *testing.T) {
	l := mustOpen(t, t.TempDir(), testOptions())
	mustAppend(t, l, 3)
	mustClose(t, l)
	_, appended := l.Append(batchFrom(1, 1))
	_, _, _, snapshot := l.Snapshot()
	for name, err := range map[string]error{
		"append": appended, "snapshot": snapshot,
		"write snapshot": l.WriteSnapshot(1, stateAt(1)),
		"drop":           l.DropBefore(1),
		"read":           l.Read(1, nil),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRandomLives holds random lives of a log, with restarts, crashes and changed segment sizes, against
// the one rule that they must all keep: checkLog finds every record that was acknowledged.
func TestRandomLives(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir := scratch(t)
		o := testOptions()
		l := mustOpen(t, dir, o)
		acked := uint64(0)
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			switch rapid.SampledFrom([]string{"append", "append", "append", "snapshot", "drop", "reopen", "crash"}).Draw(rt, "step") {
			case "append":
				n := rapid.IntRange(1, 40).Draw(rt, "records")
				if _, err := l.Append(batchFrom(acked+1, n)); err != nil {
					rt.Fatal(err)
				}
				acked += uint64(n)
			case "snapshot":
				lifeSnapshot(rt, l, acked)
			case "drop":
				if err := l.DropBefore(rapid.Uint64Range(0, acked+2).Draw(rt, "before")); err != nil {
					rt.Fatal(err)
				}
			case "reopen":
				mustClose(t, l)
				o.SegmentBytes = rapid.IntRange(1, 2000).Draw(rt, "size")
				l = mustOpen(t, dir, o)
			case "crash":
				next := scratch(t)
				copyDir(t, dir, next)
				mustClose(t, l)
				dir = next
				l = mustOpen(t, dir, o)
			}
			if l.Last() != acked {
				rt.Fatalf("last %d of %d", l.Last(), acked)
			}
			if err := checkLog(l); err != nil {
				rt.Fatal(err)
			}
		}
		mustClose(t, l)
	})
}

func lifeSnapshot(rt *rapid.T, l *Log, acked uint64) {
	newest, r, ok, err := l.Snapshot()
	if err != nil {
		rt.Fatal(err)
	}
	if ok {
		if err := r.Close(); err != nil {
			rt.Fatal(err)
		}
	}
	if acked == 0 {
		return
	}
	seq := rapid.Uint64Range(max(1, newest), acked).Draw(rt, "sequence")
	if err := l.WriteSnapshot(seq, stateAt(seq)); err != nil {
		rt.Fatal(err)
	}
}

// TestAppendBesideSnapshot runs the two calls that may overlap, for the race detector.
func TestAppendBesideSnapshot(t *testing.T) {
	l := mustOpen(t, t.TempDir(), testOptions())
	mustAppend(t, l, 10)
	start, done := make(chan struct{}), make(chan error)
	go func() {
		<-start
		var err error
		for seq := uint64(1); seq < 10 && err == nil; seq++ {
			err = l.WriteSnapshot(seq, func(w io.Writer) error {
				_ = l.Stats()
				return stateAt(seq)(w)
			})
			_, _ = l.First(), l.Last()
		}
		done <- err
	}()
	close(start)
	for range 50 {
		mustAppend(t, l, 3)
		must(t, l.DropBefore(l.Last()))
	}
	must(t, <-done)
	wantWhole(t, l)
	mustClose(t, l)
}
