package wal

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// segmentDamages is ways to damage the segments of a log, except torn tails.
func segmentDamages(t *testing.T, h writtenLog) map[string]func(map[string][]byte) {
	t.Helper()
	other := otherLog(t, 40)
	names := segmentNames(h.files)
	if len(names) < 4 {
		t.Fatalf("%d segments are too few", len(names))
	}
	last := lastWithFrames(h.files)
	offsets := frameOffsets(t, h.files[names[1]])
	return map[string]func(map[string][]byte){
		"first missing":   func(f map[string][]byte) { delete(f, names[0]) },
		"middle missing":  func(f map[string][]byte) { delete(f, names[1]) },
		"last missing":    func(f map[string][]byte) { delete(f, last) },
		"all missing":     func(f map[string][]byte) { maps.DeleteFunc(f, func(n string, _ []byte) bool { return n != markName }) },
		"first empty":     func(f map[string][]byte) { f[names[0]] = nil },
		"middle empty":    func(f map[string][]byte) { f[names[1]] = nil },
		"last empty":      func(f map[string][]byte) { f[last] = nil },
		"swapped":         func(f map[string][]byte) { f[names[0]], f[names[1]] = f[names[1]], f[names[0]] },
		"copied over":     func(f map[string][]byte) { f[names[1]] = f[names[0]] },
		"copied behind":   func(f map[string][]byte) { f["00000000000000000999"] = f[names[0]] },
		"renamed":         func(f map[string][]byte) { f["00000000000000000002"] = f[names[0]]; delete(f, names[0]) },
		"numbered zero":   func(f map[string][]byte) { f["00000000000000000000"] = f[names[0]] },
		"START file":      func(f map[string][]byte) { f[names[2]+".START"] = f[names[2]] },
		"END file":        func(f map[string][]byte) { f[names[1]+".END"] = f[names[1]] },
		"stale first":     func(f map[string][]byte) { f[names[0]] = other[names[0]] },
		"stale middle":    func(f map[string][]byte) { f[names[1]] = other[names[1]] },
		"stale last":      func(f map[string][]byte) { f[last] = other[last] },
		"stale log":       func(f map[string][]byte) { maps.Copy(f, withoutKey(other, markName)) },
		"short middle":    func(f map[string][]byte) { f[names[1]] = f[names[1]][:offsets[2]] },
		"torn middle":     func(f map[string][]byte) { f[names[1]] = f[names[1]][:offsets[2]+7] },
		"rubbish behind":  func(f map[string][]byte) { f[last] = append(slices.Clone(f[last]), make([]byte, entryBytesMax+1)...) },
		"rubbish between": func(f map[string][]byte) { f[names[1]] = append(slices.Clone(f[names[1]]), 1, 2, 3) },
		"frame cut out": func(f map[string][]byte) {
			f[names[1]] = slices.Delete(slices.Clone(f[names[1]]), offsets[1], offsets[2])
		},
		"frame twice": func(f map[string][]byte) {
			f[names[1]] = slices.Insert(slices.Clone(f[names[1]]), offsets[1], f[names[1]][:offsets[1]]...)
		},
		"last damaged": func(f map[string][]byte) { // a whole frame follows it
			f[last] = slices.Clone(f[last])
			f[last][frameOffsets(t, h.files[last])[1]+45] ^= 1
		},
		"longest torn tail": func(f map[string][]byte) { f[last] = append(slices.Clone(f[last]), make([]byte, entryBytesMax)...) },
		"tail frame twice":  func(f map[string][]byte) { f[last] = twiceLast(t, f[last]) },
	}
}

// otherLog has the same frames, sequences and sizes with other bytes, like an older copy of the log.
func otherLog(t *testing.T, batches int) map[string][]byte {
	t.Helper()
	dir := t.TempDir()
	l := mustOpen(t, dir, testOptions())
	for i := range batches {
		b := batchFrom(l.Last()+1, 1+i%3)
		b[0][len(b[0])-1] ^= 1
		if _, err := l.Append(b); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, l)
	return readFiles(t, dir)
}

func withoutKey(all map[string][]byte, key string) map[string][]byte {
	all = maps.Clone(all)
	delete(all, key)
	return all
}

func twiceLast(t *testing.T, data []byte) []byte {
	t.Helper()
	offsets := frameOffsets(t, data)
	return append(slices.Clone(data), data[offsets[len(offsets)-2]:]...)
}

// TestSegmentsAfterARoll tests logs whose last segment is empty.
func TestSegmentsAfterARoll(t *testing.T) {
	o := testOptions()
	o.SegmentBytes = 1 // every batch fills a segment
	dir := t.TempDir()
	l := mustOpen(t, dir, o)
	mustAppend(t, l, 3)
	last := l.Last()
	mustClose(t, l)
	all := readFiles(t, dir)
	names := segmentNames(all)
	if len(names) != 4 || len(all[names[3]]) != 0 {
		t.Fatalf("%d segments", len(names))
	}
	for name, change := range map[string]func(map[string][]byte){
		"as closed":         func(map[string][]byte) {},
		"new name lost":     func(f map[string][]byte) { delete(f, names[3]) },
		"part of a frame":   func(f map[string][]byte) { f[names[3]] = f[names[2]][:20] },
		"mark lost as well": func(f map[string][]byte) { delete(f, names[3]); delete(f, markName) },
	} {
		broken := maps.Clone(all)
		change(broken)
		next := filepath.Join(scratch(t), "log")
		writeFiles(t, next, broken)
		l := mustOpen(t, next, o)
		if l.Last() != last {
			t.Errorf("%s: last %d of %d", name, l.Last(), last)
		}
		mustAppend(t, l, 3)
		mustClose(t, l)
		l = mustOpen(t, next, o)
		if err := checkLog(l); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		mustClose(t, l)
	}
}

// truncation is one case of the sweep: the end of the last segment is missing, with some mark.
type truncation struct {
	name string
	mark []byte // nil = no mark
	// acked is how many batches the mark proves.
	acked int
}

func TestW4_TruncationAtEveryByte(t *testing.T) {
	h := writeLog(t, 20)
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

func truncateEverywhere(t *testing.T, h writtenLog, c truncation, base int) {
	name := lastWithFrames(h.files)
	offsets := frameOffsets(t, h.files[name])
	dir := filepath.Join(scratch(t), "log")
	cases, refused, exact, ambiguous := 0, 0, 0, 0
	for size := len(h.files[name]); size >= 0; size -= sampleSize(7, 1) {
		broken := maps.Clone(h.files)
		broken[name] = h.files[name][:size]
		broken[markName] = c.mark
		if c.mark == nil {
			delete(broken, markName)
		}
		writeFiles(t, dir, broken)
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

// checkCut checks an opened log that was cut after the batches, and reports whether its tail is ambiguous.
func checkCut(t *testing.T, l *Log, h writtenLog, batches int, tail []byte) bool {
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

// TestW3_SegmentAboveTheLimit opens a log whose last segment is over the limit, so that the next batch begins a
// segment: the name of the new segment is durable before the mark advances to the batch.
func TestW3_SegmentAboveTheLimit(t *testing.T) {
	dir := filepath.Join(scratch(t), "log")
	o := testOptions()
	o.SegmentBytes = 64 << 10
	l := mustOpen(t, dir, o)
	mustAppend(t, l, 20)
	mustClose(t, l)
	o = testOptions()
	var steps []string
	o.disk = hookedDisk(func(kind, path string) error {
		steps = append(steps, kind+" "+filepath.Base(path))
		return nil
	})
	l = mustOpen(t, dir, o)
	steps = nil
	if _, err := l.Append(batchFrom(l.Last()+1, 1)); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(steps, ", "); got != "syncDir log, write mark" || len(l.segments) != 2 {
		t.Errorf("%d segments; the steps are %s", len(l.segments), got)
	}
	wantWhole(t, l)
	mustClose(t, l)
}
