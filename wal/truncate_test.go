package wal

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// truncation is one case of the sweep: the last segment ends early, beside a mark.
type truncation struct {
	name string
	mark []byte // nil = no mark
	// acked is how many batches the mark proves.
	acked int
}

func TestW4_TruncationAtEveryByte(t *testing.T) {
	h := write(t, 20)
	whole := len(h.batches)
	base := whole - len(frameOffsets(t, h.files[lastWithFrames(h.files)])) + 1 // batches in the segments before
	for _, c := range []truncation{
		{"mark of the end", h.files[markName], whole},
		{"mark of two batches before", h.marks[whole-3], whole - 2},
		{"mark of the segments before", h.marks[base-1], base},
		{"no mark", nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) { truncateEverywhere(t, h, c, base) })
	}
}

func truncateEverywhere(t *testing.T, h history, c truncation, base int) {
	name := lastWithFrames(h.files)
	offsets := frameOffsets(t, h.files[name])
	dir := filepath.Join(scratch(t), "log")
	cases, refused, exact, ambiguous := 0, 0, 0, 0
	for size := len(h.files[name]); size >= 0; size -= sweep(7, 1) {
		broken := maps.Clone(h.files)
		broken[name] = h.files[name][:size]
		broken[markName] = c.mark
		if c.mark == nil {
			delete(broken, markName)
		}
		put(t, dir, broken)
		want := base // batches that are whole
		for _, end := range offsets[1:] {
			if end <= size {
				want++
			}
		}
		cases++
		before := hashDir(t, dir)
		l, err := Open(dir, testOptions())
		var damage *DamageError
		switch {
		case want < c.acked:
			if !errors.As(err, &damage) || hashDir(t, dir) != before {
				t.Fatalf("%d bytes, %d of %d acknowledged batches: %v", size, want, c.acked, err)
			}
			refused++
			continue
		case err != nil:
			t.Fatalf("%d bytes: %v", size, err)
		}
		exact++
		if checkCut(t, l, h, want, h.files[name][offsets[want-base]:size]) {
			ambiguous++
		}
	}
	t.Logf("%d truncations: %d exact prefix, of these %d ambiguous, %d refused", cases, exact, ambiguous, refused)
	if exact == 0 || (c.acked > base) != (refused > 0) || (c.mark == nil) != (ambiguous == exact) {
		t.Error("the sweep did not meet what it is for")
	}
}

// checkCut checks an opened log that was cut behind the batches and says whether its tail is ambiguous.
func checkCut(t *testing.T, l *Log, h history, batches int, tail []byte) bool {
	t.Helper()
	defer mustClose(t, l)
	r := l.Recovery()
	if l.Last() != uint64(h.batches[batches-1]) || r.TornBytes != int64(len(tail)) {
		t.Fatalf("last %d, want %d; cut %d, want %d", l.Last(), h.batches[batches-1], r.TornBytes, len(tail))
	}
	must(t, checkLog(l))
	if len(tail) > 0 {
		kept, err := os.ReadFile(r.TornFile)
		if err != nil || !slices.Equal(kept, tail) {
			t.Fatalf("kept %d bytes of %d, %v", len(kept), len(tail), err)
		}
	}
	return r.AmbiguousTail
}
