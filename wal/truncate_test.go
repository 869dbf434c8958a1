package wal

import (
	"errors"
	"fmt"
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
	for size := len(h.files[name]); size >= 0; size -= 1 + stride(1)/2 {
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
	if err := checkLog(l); err != nil {
		t.Fatal(err)
	}
	if len(tail) > 0 {
		kept, err := os.ReadFile(r.TornFile)
		if err != nil || !slices.Equal(kept, tail) {
			t.Fatalf("kept %d bytes of %d, %v", len(kept), len(tail), err)
		}
	}
	return r.AmbiguousTail
}

// TestW4_TruncationControl plants a reader that ignores the mark: it must take acknowledged records for a
// torn tail, and the sweep's judgement must say so.
func TestW4_TruncationControl(t *testing.T) {
	h := write(t, 20)
	name := lastWithFrames(h.files)
	dir := filepath.Join(scratch(t), "log")
	broken := maps.Clone(h.files)
	good, planted := &tally{}, &tally{}
	for size := range len(h.files[name]) {
		broken[name] = h.files[name][:size]
		put(t, dir, broken)
		v := ours(dir)
		good.add(fmt.Sprint(size), v, h.judge(v, true))
		v = withoutMark(dir)
		planted.add(fmt.Sprint(size), v, h.judge(v, true))
	}
	t.Logf("with the mark: %s; without: %s", good, planted)
	if good.bad != 0 || planted.bad != planted.cases || planted.cases == 0 {
		t.Errorf("with the mark: %s; without: %s", good, planted)
	}
}

// TestW4_AppendAfterACut goes on where a torn tail was cut, which must leave a log as good as any.
func TestW4_AppendAfterACut(t *testing.T) {
	h := write(t, 20)
	name := lastWithFrames(h.files)
	whole := len(h.batches)
	h.files[markName] = h.marks[whole-2]
	dir := filepath.Join(scratch(t), "log")
	for _, missing := range []int{1, 5, 30} {
		h.files[name] = h.files[name][:len(h.files[name])-missing]
		put(t, dir, h.files)
		l := mustOpen(t, dir, testOptions())
		mustAppend(t, l, 10)
		mustClose(t, l)
		l = mustOpen(t, dir, testOptions())
		if r := l.Recovery(); r.TornBytes != 0 || r.Mark != MarkWhole {
			t.Errorf("%+v", r)
		}
		if err := checkLog(l); err != nil {
			t.Error(err)
		}
		mustClose(t, l)
		h = write(t, 20)
		h.files[markName] = h.marks[whole-2]
	}
}
