package wal

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// readResult is what a reader found in a directory.
type readResult struct {
	records   [][]byte
	reported  bool // it report that something was not as it should be
	ambiguous bool
	err       error // it refused
}

// logReader reads a directory without changing it. Sweeps also run readers with planted bugs, which they must find.
type logReader func(dir string) readResult

// readExamined is the reader under test.
func readExamined(dir string) readResult {
	var v readResult
	x, err := examine(dir, func(_ string, _ int64, f frame) error {
		return f.records(func(_ uint64, r []byte) error {
			v.records = append(v.records, slices.Clone(r))
			return nil
		})
	})
	v.err = err
	v.ambiguous = x.ambiguousTail()
	v.reported = v.ambiguous || x.log.torn > 0 || x.markState != MarkWhole || len(x.damagedSnapshots()) > 0
	return v
}

// readIgnoringMark is a planted bug: it ignores the mark.
func readIgnoringMark(dir string) readResult {
	path := filepath.Join(dir, markName)
	if err := os.Rename(path, path+"-hidden"); err != nil {
		return readResult{err: err}
	}
	v := readExamined(dir)
	v.ambiguous, v.reported = false, false
	v.err = errors.Join(v.err, os.Rename(path+"-hidden", path))
	return v
}

// readIgnoringChain is a planted bug: it checks each frame but not their order.
func readIgnoringChain(dir string) readResult {
	l, err := listDir(dir)
	v := readResult{err: err}
	for _, file := range l.segments {
		data, err := os.ReadFile(file.path)
		for v.err = errors.Join(v.err, err); len(data) > 0; {
			f, n, bad := decodeEntry(data)
			if bad != nil {
				v.reported, v.err = true, &DamageError{File: file.path}
				return v
			}
			_ = f.records(func(_ uint64, r []byte) error {
				v.records = append(v.records, slices.Clone(r))
				return nil
			})
			data = data[n:]
		}
	}
	return v
}

// writtenLog is the files of a log and their contents.
type writtenLog struct {
	files   map[string][]byte
	records [][]byte
	batches []int    // records up to the end of each batch
	marks   [][]byte // the mark as it was after each batch
}

func writeLog(t testing.TB, batches int, snapshots ...int) writtenLog {
	t.Helper()
	dir := scratch(t)
	l := mustOpen(t, dir, testOptions())
	var h writtenLog
	one := func(n int) {
		_, err := l.Append(batchFrom(l.Last()+1, n))
		must(t, err)
		h.batches = append(h.batches, int(l.Last()))
		data, err := os.ReadFile(filepath.Join(dir, markName))
		must(t, err)
		h.marks = append(h.marks, data)
	}
	for i := range batches {
		one(1 + i%3)
		if slices.Contains(snapshots, i) {
			mustSnapshot(t, l, l.Last())
		}
	}
	for last := l.segments[len(l.segments)-1]; last.bytes < 200; last = l.segments[len(l.segments)-1] {
		one(2) // the sweeps need a last segment that is not empty
	}
	for seq := range l.Last() {
		h.records = append(h.records, record(seq+1))
	}
	mustClose(t, l)
	h.files = readFiles(t, dir)
	return h
}

// check returns what is wrong with the reading of a damaged copy, "" if nothing is.
func (h writtenLog) check(v readResult, acked bool) string {
	if v.err != nil {
		var damage *DamageError
		var format *FormatError
		switch {
		case errors.As(v.err, &damage) && damage.File != "", errors.As(v.err, &format):
			return ""
		}
		return fmt.Sprintf("refused without a place: %v", v.err)
	}
	n := len(v.records)
	if n > len(h.records) || !slices.EqualFunc(v.records, h.records[:n], bytes.Equal) {
		return fmt.Sprintf("%d records that were not written so", n)
	}
	if n > 0 && !slices.Contains(h.batches, n) {
		return fmt.Sprintf("half a batch: %d records", n)
	}
	if acked && n < len(h.records) {
		return fmt.Sprintf("lost %d acknowledged records", len(h.records)-n)
	}
	if !v.reported {
		return "silent"
	}
	return ""
}

// sweepResult counts the cases of a sweep.
type sweepResult struct {
	cases, refused, reported, ambiguous, bad int
	first                                    string
}

func (c *sweepResult) add(what string, v readResult, complaint string) {
	c.cases++
	switch {
	case v.err != nil:
		c.refused++
	case v.ambiguous:
		c.ambiguous++
	case v.reported:
		c.reported++
	}
	if complaint != "" {
		c.bad++
		if c.first == "" {
			c.first = what + ": " + complaint
		}
	}
}

func (c *sweepResult) String() string {
	return fmt.Sprintf("%d cases: %d refused, %d reported, %d ambiguous, %d bad (%s)", c.cases, c.refused, c.reported, c.ambiguous, c.bad, c.first)
}

// damages calls try with one file of a log with other bytes, many times.
type damages func(try func(what, file string, data []byte))

// flips flips each stride-th bit of the named files.
func (h writtenLog) flips(names []string, stride int) damages {
	return func(try func(what, file string, data []byte)) {
		bit := 0
		for _, name := range names {
			for at := range 8 * len(h.files[name]) {
				if bit++; bit%stride == 0 {
					data := slices.Clone(h.files[name])
					data[at/8] ^= 1 << (at % 8)
					try(fmt.Sprintf("%s byte %d bit %d", name, at/8, at%8), name, data)
				}
			}
		}
	}
}

// zeros overwrites 64 bytes with zeros, at each stride-th byte of the segments.
func (h writtenLog) zeros(stride int) damages {
	return func(try func(what, file string, data []byte)) {
		for _, name := range segmentNames(h.files) {
			for at := 0; at < len(h.files[name]); at += stride {
				data := slices.Clone(h.files[name])
				if run := data[at:min(at+64, len(data))]; len(bytes.Trim(run, "\x00")) > 0 {
					clear(run)
					try(fmt.Sprintf("%s zeros at %d", name, at), name, data)
				}
			}
		}
	}
}

// sectors fills random sectors of the segments with zeros or another byte.
func (h writtenLog) sectors(rounds int) damages {
	names := slices.DeleteFunc(segmentNames(h.files), func(n string) bool { return len(h.files[n]) == 0 })
	return func(try func(what, file string, data []byte)) {
		r := rand.New(rand.NewSource(4))
		for range rounds {
			name := names[r.Intn(len(names))]
			data := slices.Clone(h.files[name])
			at, fill := 512*r.Intn((len(data)+511)/512), byte(0)
			if r.Intn(2) == 0 {
				fill = byte(r.Intn(256))
			}
			for i := at; i < min(at+512, len(data)); i++ {
				data[i] = fill
			}
			try(fmt.Sprintf("%s sector at %d filled with %d", name, at, fill), name, data)
		}
	}
}

// staleSegments replaces segments by those of an older copy: only the chain tells them apart.
func (h writtenLog) staleSegments(other map[string][]byte) damages {
	return func(try func(what, file string, data []byte)) {
		for _, name := range segmentNames(h.files) {
			if data := other[name]; len(data) > 0 {
				try(name+" is stale", name, data)
			}
		}
	}
}

// sweep runs a reader on each damage. acked: all records were acknowledged.
func (h writtenLog) sweep(t testing.TB, read logReader, acked bool, all damages) *sweepResult {
	t.Helper()
	dir := filepath.Join(scratch(t), "log")
	writeFiles(t, dir, h.files)
	c := &sweepResult{}
	all(func(what, file string, data []byte) {
		path := filepath.Join(dir, file)
		must(t, os.WriteFile(path, data, 0o600))
		v := read(dir)
		c.add(what, v, h.check(v, acked))
		must(t, os.WriteFile(path, h.files[file], 0o600))
	})
	t.Logf("%s", c)
	return c
}

// TestW4_DamageIsSeen damages whole logs: each damage must be reported or refused. Readers with planted bugs must be
// found.
func TestW4_DamageIsSeen(t *testing.T) {
	log, large, compacted := writeLog(t, 20, 9, 15), writeLog(t, 120, 40, 70), compactedLog(t)
	plain := writeLog(t, 20)
	names := segmentNames(compacted.files)
	outer := slices.DeleteFunc(slices.Sorted(maps.Keys(compacted.files)), func(name string) bool {
		return slices.Contains(names, name) && name != names[0] && name != lastWithFrames(compacted.files)
	})
	for name, c := range map[string]struct {
		h        writtenLog
		all      damages
		reported bool // some are reported and not refused
		planted  []logReader
	}{
		"bit flips": {log, log.flips(slices.Sorted(maps.Keys(log.files)), sampleSize(13, 1)), true, nil},
		"bit flips of segments": {plain, plain.flips(segmentNames(plain.files), sampleSize(61, 5)), false,
			[]logReader{readIgnoringMark}},
		"bit flips of a compacted log": {compacted, compacted.flips(outer, sampleSize(13, 1)), true, nil},
		"zeros":                        {plain, plain.zeros(sampleSize(11, 1)), false, nil},
		"lost sectors":                 {large, large.sectors(sampleSize(150, 1000)), false, nil},
		"stale segments":               {large, large.staleSegments(otherLog(t, 120)), false, []logReader{readIgnoringChain}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.h.sweep(t, readExamined, true, c.all); got.bad > 0 || got.refused == 0 || got.ambiguous != 0 || c.reported != (got.reported > 0) {
				t.Errorf("sweep: %s", got)
			}
			for i, planted := range c.planted {
				if c.h.sweep(t, planted, true, c.all).bad == 0 {
					t.Errorf("the sweep did not notice planted bug %d", i)
				}
			}
		})
	}
}

// compactedLog does not begin with record 1.
func compactedLog(t *testing.T) writtenLog {
	dir := scratch(t)
	compacted(t, dir)
	h := writtenLog{files: readFiles(t, dir), records: readExamined(dir).records}
	for i := range h.records {
		h.batches = append(h.batches, i+1)
	}
	return h
}

func TestW4_BitFlipsWithoutAMarkAreAtMostAmbiguousInTheLastFrame(t *testing.T) {
	h := writeLog(t, 20)
	delete(h.files, markName)
	c := h.sweep(t, readExamined, false, h.flips(segmentNames(h.files), sampleSize(13, 1)))
	if c.bad > 0 || c.refused == 0 || c.ambiguous == 0 {
		t.Errorf("sweep: %s", c)
	}
	last := h.files[lastWithFrames(h.files)]
	if frames := frameOffsets(t, last); c.ambiguous > 8*(len(last)-frames[len(frames)-2]) {
		t.Errorf("%d flips are ambiguous, the last frame has only %d bits", c.ambiguous, 8*(len(last)-frames[len(frames)-2]))
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// frameOffsets is where each frame of a segment begins, and the end.
func frameOffsets(t testing.TB, data []byte) []int {
	t.Helper()
	offsets := []int{0}
	for at := 0; at < len(data); {
		_, n, bad := decodeEntry(data[at:])
		if bad != nil {
			t.Fatal(bad.found)
		}
		at += n
		offsets = append(offsets, at)
	}
	return offsets
}

func lastWithFrames(all map[string][]byte) string {
	names := segmentNames(all)
	for _, name := range slices.Backward(names) {
		if len(all[name]) > 0 {
			return name
		}
	}
	return ""
}

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
		tail := h.files[name][offsets[want-base]:size]
		got := checkCut(t, l, h, want, tail)
		if got != (c.mark == nil || len(tail) > 0 && want > c.acked) {
			t.Fatalf("%d bytes, %d batches, %d in the mark: ambiguous is %v", size, want, c.acked, got)
		}
		if got {
			ambiguous++
		}
	}
	t.Logf("%d truncations: %d exact prefix, of these %d ambiguous, %d refused", cases, exact, ambiguous, refused)
	if exact == 0 || (c.acked > base) != (refused > 0) {
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
