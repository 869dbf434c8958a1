package wal

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"
)

// segmentDamages are what can happen to the segments of a log besides a torn tail.
func segmentDamages(t *testing.T, h history) map[string]func(map[string][]byte) {
	t.Helper()
	other := otherHistory(t, 40)
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
		"tail frame twice": func(f map[string][]byte) { f[last] = twiceLast(t, f[last]) },
	}
}

// otherHistory has the same frames, sequences and sizes with other bytes: an older copy of the log, as far
// as names can tell.
func otherHistory(t *testing.T, batches int) map[string][]byte {
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
	return files(t, dir)
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

// TestW5_SegmentControls shows that the chain is what finds a stale or copied segment: a reader that checks
// each frame alone takes them.
func TestW5_SegmentControls(t *testing.T) {
	h := write(t, 40)
	other := otherHistory(t, 40)
	names := segmentNames(h.files)
	dir := filepath.Join(scratch(t), "log")
	for name, change := range map[string]func(map[string][]byte){
		"stale middle":   func(f map[string][]byte) { f[names[1]] = other[names[1]] },
		"swapped":        func(f map[string][]byte) { f[names[0]], f[names[1]] = f[names[1]], f[names[0]] },
		"middle missing": func(f map[string][]byte) { delete(f, names[1]) },
	} {
		broken := maps.Clone(h.files)
		change(broken)
		put(t, dir, broken)
		if complaint := h.judge(withoutChain(dir), true); complaint == "" {
			t.Errorf("%s: a reader without the chain passes", name)
		}
		if complaint := h.judge(ours(dir), true); complaint != "" {
			t.Errorf("%s: %s", name, complaint)
		}
	}
}

// TestSegmentsAfterARoll covers the moments around the birth of a segment, when the last one is empty.
func TestSegmentsAfterARoll(t *testing.T) {
	o := testOptions()
	o.SegmentBytes = 1 // every batch fills a segment
	dir := t.TempDir()
	l := mustOpen(t, dir, o)
	mustAppend(t, l, 3)
	last := l.Last()
	mustClose(t, l)
	all := files(t, dir)
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
		put(t, next, broken)
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
