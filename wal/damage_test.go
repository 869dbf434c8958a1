package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// goldenReport collects messages about damaged logs, to be compared word for word.
type goldenReport struct {
	strings.Builder
	dir string
}

func (s *goldenReport) line(format string, values ...any) {
	s.WriteString(strings.ReplaceAll(fmt.Sprintf(format, values...), s.dir, "DIR") + "\n")
}

// golden compares with testdata; -update rewrites it.
func (s *goldenReport) golden(t *testing.T, name string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		must(t, os.WriteFile(path, []byte(s.String()), 0o644))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	got, expected := strings.Split(s.String(), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(got), len(expected)) {
		g, w := got[min(i, len(got)):min(i+1, len(got))], expected[min(i, len(expected)):min(i+1, len(expected))]
		if !slices.Equal(g, w) {
			t.Fatalf("%s:%d\n got %s\nwant %s\n(go test ./wal -run Damage -update writes it anew)", path, i+1, g, w)
		}
	}
}

func TestW4_DamageOfAFrameIsNamedExactly(t *testing.T) {
	report := &goldenReport{dir: "/none"}
	whole := entry(position{frame: 3, sequence: 5, chain: 7}, []byte("one"), []byte("two"))
	longest := binary.AppendUvarint(nil, frameBytesMax)
	for _, c := range []struct {
		name string
		data []byte
	}{
		{"whole", whole}, {"nothing", nil}, {"half a length", []byte{0x80}}, {"length only", whole[:1]},
		{"shortest length", []byte{frameBytesMin}}, {"below the shortest", []byte{frameBytesMin - 1}},
		{"longest length", longest}, {"above the longest", binary.AppendUvarint(nil, frameBytesMax+1)},
		{"five bytes of length", []byte{0xff, 0xff, 0xff, 0xff, 0x0f}}, {"six bytes of length", []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0x01}},
		{"longer form", append([]byte{whole[0] | 0x80, 0}, whole[1:]...)},
		{"a byte less than a header", whole[:40]}, {"a header", whole[:41]}, {"all but a byte", whole[:len(whole)-1]}, {"a byte more", append(bytes.Clone(whole), 9)},
	} {
		report.reportFrame(c.name, c.data)
	}
	for name, change := range map[string]func(f []byte){
		"a record less":  func(f []byte) { f[8]-- },
		"sequence wraps": func(f []byte) { copy(f[24:32], bytes.Repeat([]byte{0xff}, 8)) },
	} {
		data := bytes.Clone(whole)
		change(data[1:])
		if _, _, bad := decodeEntry(resum(data)); bad == nil || bad.torn || bad.version != 0 {
			t.Errorf("%s: %+v", name, bad)
		}
	}
	for at := 1; at < len(whole); at++ { // each byte, checksums left and put right
		for _, right := range []bool{false, true} {
			for _, value := range []byte{0, whole[at] + 1, 0xff} {
				data := bytes.Clone(whole)
				if data[at] = value; right {
					resum(data)
				}
				report.reportFrame(fmt.Sprintf("byte %d is %d, summed %v", at-1, value, right), data)
			}
		}
	}
	f, _, _ := decodeEntry(whole)
	for _, at := range []position{{3, 5, 7}, {4, 5, 7}, {3, 4, 7}, {3, 5, 8}} {
		report.line("follows %+v: %+v", at, f.checkPosition(at))
	}
	report.golden(t, "frames.txt")
}

func (s *goldenReport) reportFrame(name string, data []byte) {
	f, n, bad := decodeEntry(data)
	f.payload = nil
	if bad == nil {
		s.line("%s: %d bytes, %+v, next %+v", name, n, f, f.next())
		return
	}
	s.line("%s: %d bytes, frame %d: %+v", name, n, f.index, *bad)
}

func TestW4_DamageOfASnapshotOrMarkIsNamedExactly(t *testing.T) {
	report := &goldenReport{dir: "/none"}
	path := filepath.Join(t.TempDir(), "snapshot")
	must(t, quickDisk().createFile(path, func(out *fileWriter) error {
		return errors.Join(encodeSnapshot(out, 7, stateAt(7)))
	}))
	whole, err := os.ReadFile(path)
	must(t, err)
	file := &SnapshotReport{Sequence: 7}
	snapshot := func(name string, data []byte) {
		bad, err := file.verify(bytes.NewReader(data), int64(len(data)))
		if bad == nil {
			report.line("%s: %d bytes, %v", name, len(data)-snapshotHeaderBytes-snapshotTrailerBytes, err)
			return
		}
		report.line("%s: %+v, %v", name, *bad, err)
	}
	snapshot("whole", whole)
	for size := range len(whole) {
		snapshot(fmt.Sprintf("%d bytes", size), whole[:size])
	}
	for at := range whole {
		for _, right := range []bool{false, true} {
			data := bytes.Clone(whole)
			if data[at]++; right {
				binary.LittleEndian.PutUint32(data[16:], checksum(data[:16]))
				binary.LittleEndian.PutUint32(data[len(data)-4:], checksum(data[:len(data)-4]))
			}
			snapshot(fmt.Sprintf("byte %d, summed %v", at, right), data)
		}
	}
	for size := range int64(len(whole)) { // the file became shorter while it was read
		bad, err := file.verify(bytes.NewReader(whole[:size]), int64(len(whole)))
		report.line("%d of %d bytes can be read: %v, %v", size, len(whole), bad != nil, err)
	}
	report.reportMarks()
	report.golden(t, "snapshots.txt")
}

func (s *goldenReport) reportMarks() {
	one := func(name string, m mark, change func(b []byte) []byte) {
		b := m.encode()
		if change != nil {
			b = change(b)
		}
		m, newer, ok := decodeMark(b)
		s.line("mark %s: %+v, newer %d, %v", name, m, newer, ok)
	}
	good := mark{generation: 3, first: 2, end: position{4, 9, 77}}
	one("whole", good, nil)
	one("longer", good, func(b []byte) []byte { return append(b, 1) })
	one("shorter", good, func(b []byte) []byte { return b[:len(b)-1] })
	for at := range 48 {
		one(fmt.Sprintf("byte %d", at), good, func(b []byte) []byte { b[at]++; return b })
		one(fmt.Sprintf("byte %d summed", at), good, func(b []byte) []byte {
			b[at]++
			binary.LittleEndian.PutUint32(b[len(b)-4:], checksum(b[:len(b)-4]))
			return b
		})
	}
	for _, m := range []mark{{1, 0, position{1, 1, 0}}, {1, 1, position{0, 1, 0}}, {1, 2, position{1, 1, 0}}, {1, 2, position{2, 1, 0}}, {1, 2, position{2, 0, 0}}} {
		one("of other numbers", m, nil)
	}
	one("version 0", good, func(b []byte) []byte {
		b[4] = 0
		binary.LittleEndian.PutUint32(b[len(b)-4:], checksum(b[:len(b)-4]))
		return b
	})
}

// TestW5_DamageOfALogIsNamedExactly damages logs in many ways and records the results of Open, Verify and Repair.
func TestW5_DamageOfALogIsNamedExactly(t *testing.T) {
	report := &goldenReport{dir: filepath.Join(scratch(t), "log")}
	h := writeLog(t, 40)
	for _, name := range slices.Sorted(maps.Keys(segmentDamages(t, h))) {
		for _, marked := range []bool{true, false} {
			broken := maps.Clone(h.files)
			segmentDamages(t, h)[name](broken)
			if !marked {
				delete(broken, markName)
			}
			report.reportDir(t, fmt.Sprintf("%s, mark %v", name, marked), broken)
		}
	}
	report.golden(t, "segments.txt")
}

func TestW5_DamageOfACompactedLogIsNamedExactly(t *testing.T) {
	report := &goldenReport{dir: filepath.Join(scratch(t), "log")}
	dir := filepath.Join(scratch(t), "log")
	older, newer := compacted(t, dir)
	all := readFiles(t, dir)
	names, slot := segmentNames(all), all[markName][:markSlotBytes]
	one, two := filepath.Base(snapshotPath("", older)), filepath.Base(snapshotPath("", newer))
	flipped := func(name string, at int) []byte { b := bytes.Clone(all[name]); b[at] ^= 1; return b }
	torn := func(f map[string][]byte) { f[names[len(names)-1]] = []byte{100} }
	changes := map[string]func(f map[string][]byte){
		"nothing":                func(map[string][]byte) {},
		"older snapshot damaged": func(f map[string][]byte) { f[one] = flipped(one, 22) },
		"newer snapshot damaged": func(f map[string][]byte) { f[two] = flipped(two, 22) },
		"both snapshots damaged": func(f map[string][]byte) { f[one], f[two] = flipped(one, 3), flipped(two, 9) },
		"snapshots gone":         func(f map[string][]byte) { delete(f, one); delete(f, two) },
		"newer gone":             func(f map[string][]byte) { delete(f, two) },
		"snapshot of the future": func(f map[string][]byte) { f[filepath.Base(snapshotPath("", 9999))] = f[two] },
		"snapshot renamed":       func(f map[string][]byte) { f[filepath.Base(snapshotPath("", newer-1))] = f[two] },
		"snapshot empty":         func(f map[string][]byte) { f[two] = nil },
		"unfinished snapshots":   func(f map[string][]byte) { f[one+tempSuffix], f[two+tempSuffix] = nil, []byte("x") },
		"first segment gone":     func(f map[string][]byte) { delete(f, names[0]) },
		"first two gone":         func(f map[string][]byte) { delete(f, names[0]); delete(f, names[1]) },
		"segments gone": func(f map[string][]byte) {
			maps.DeleteFunc(f, func(n string, _ []byte) bool { return slices.Contains(names, n) })
		},
		"middle damaged":       func(f map[string][]byte) { f[names[1]] = flipped(names[1], 60) },
		"first damaged":        func(f map[string][]byte) { f[names[0]] = flipped(names[0], 60) },
		"mark lost":            func(f map[string][]byte) { delete(f, markName) },
		"mark empty":           func(f map[string][]byte) { f[markName] = nil },
		"mark, slot 0 damaged": func(f map[string][]byte) { f[markName] = flipped(markName, 20) },
		"mark, slot 1 damaged": func(f map[string][]byte) { f[markName] = flipped(markName, markSlotBytes+20) },
		"mark, one slot":       func(f map[string][]byte) { f[markName] = slot },
		"mark, three slots":    func(f map[string][]byte) { f[markName] = append(bytes.Clone(f[markName]), slot...) },
		"log ends before": func(f map[string][]byte) {
			maps.DeleteFunc(f, func(n string, _ []byte) bool { return slices.Contains(names[len(names)/2:], n) })
		},
		"segments and mark gone": func(f map[string][]byte) {
			maps.DeleteFunc(f, func(n string, _ []byte) bool { return slices.Contains(names, n) || n == markName })
		},
		"only a snapshot of the future": func(f map[string][]byte) {
			f[filepath.Base(snapshotPath("", newer+1))] = f[two]
			delete(f, one)
			delete(f, two)
		},
		"segments damaged":          corruptFiles(names...),
		"newest frame damaged":      corruptEnd(lastWithFrames(all)),
		"torn tail":                 func(f map[string][]byte) { torn(f) },
		"torn tail, slot 0 damaged": func(f map[string][]byte) { torn(f); f[markName] = flipped(markName, 20) },
		"torn tail, slot 1 damaged": func(f map[string][]byte) { torn(f); f[markName] = flipped(markName, markSlotBytes+20) },
		"foreign file":              func(f map[string][]byte) { f[names[1]+".START"] = []byte("x") },
		"mark lost, snapshot gone":  func(f map[string][]byte) { delete(f, markName); delete(f, one); delete(f, two) },
	}
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		broken := maps.Clone(all)
		changes[name](broken)
		report.reportDir(t, name, broken)
	}
	report.golden(t, "compacted.txt")
}

// reportDir records the results of Verify, Dump, Open and Repair.
func (s *goldenReport) reportDir(t *testing.T, name string, broken map[string][]byte) {
	t.Helper()
	s.line("== %s", name)
	writeFiles(t, s.dir, broken)
	before := hashDir(t, s.dir)
	report, err := Verify(s.dir)
	for i := range report.Snapshots {
		s.line("verify: snapshot %s of %d, %d bytes: %v", report.Snapshots[i].File, report.Snapshots[i].Sequence, report.Snapshots[i].Bytes, report.Snapshots[i].Damage)
	}
	report.Snapshots = nil
	s.line("verify: %+v %v", report, err)
	entries := 0
	err = Dump(s.dir, func(e Entry) error { entries++; return nil })
	s.line("dump: %d records, %v", entries, err != nil)
	if hashDir(t, s.dir) != before {
		t.Errorf("%s: looking has changed the directory", name)
	}
	l, err := Open(s.dir, testOptions())
	var damage *DamageError
	switch {
	case err == nil:
		s.reportOpen(t, l, strings.HasPrefix(name, "stale"))
	case !errors.As(err, &damage) || damage.File == "" || damage.Expected == "" || damage.Found == "" || damage.Hint == "" || hashDir(t, s.dir) != before:
		t.Errorf("%s: refused with %+v, or changed", name, damage)
		fallthrough
	default:
		s.line("open: %v", err)
	}
	writeFiles(t, s.dir, broken)
	repaired, err := Repair(s.dir, testOptions())
	s.line("repair: %+v %v", repaired, err)
	if err != nil {
		return
	}
	if repaired.Cause == nil && hashDir(t, s.dir) != before {
		t.Errorf("%s: a repair has changed what is good", name)
	}
	l, err = Open(s.dir, testOptions())
	must(t, err)
	s.line("then: %d to %d, %d segments", l.First(), l.Last(), len(l.segments))
	last := l.Last()
	mustClose(t, l)
	if !strings.HasPrefix(name, "stale") { // those hold other records
		checkAppends(t, s.dir, last)
	}
}

// reportOpen records the recovery and uses the log: its next snapshot moves damaged ones aside. A stale log has other
// records.
func (s *goldenReport) reportOpen(t *testing.T, l *Log, stale bool) {
	t.Helper()
	r := l.Recovery()
	for _, snapshot := range r.Snapshots {
		if snapshot.Damage != nil {
			s.line("open: passed over: %v", snapshot.Damage)
		}
	}
	s.line("open: {First:%d Last:%d Segments:%d Frames:%d Records:%d LogBytes:%d TornBytes:%d TornFile:%s AmbiguousTail:%t Mark:%s "+
		"SnapshotSequence:%d SnapshotDamage:[] TempsRemoved:%s}, %d and %d bytes", r.First, r.Last, r.Segments, r.Batches, r.Records, r.LogBytes,
		r.TornBytes, r.TornFile, r.AmbiguousTail, r.Mark, r.SnapshotSequence, r.UnfinishedSnapshots, l.Stats().LogBytes, l.Stats().SnapshotBytes)
	sequence, state, ok, err := l.Snapshot()
	if ok {
		text, readErr := io.ReadAll(state)
		must(t, errors.Join(readErr, state.Close()))
		s.line("snapshot: %d %q %v", sequence, text, err)
	}
	if !stale {
		must(t, checkLog(l))
		mustAppend(t, l, 1)
		mustSnapshot(t, l, l.Last())
		must(t, l.DropBefore(l.Last()))
	}
	mustClose(t, l)
	if r := mustOpenRecovery(t, s.dir); !stale && (slices.ContainsFunc(r.Snapshots, isDamaged) || r.SnapshotSequence != l.Last() || r.Mark != MarkWhole) {
		t.Errorf("after the next snapshot: %+v", r)
	}
}

func isDamaged(s SnapshotReport) bool { return s.Damage != nil }

// TestVerify_Beside: a log that another process writes, cuts at its beginning and fills with snapshots is whole at
// each moment, and Dump visits each record once.
func TestVerify_Beside(t *testing.T) {
	t.Parallel()
	l := mustOpen(t, t.TempDir(), Options{SegmentBytes: 512, Clock: testClock, ReserveBytes: -1})
	var written atomic.Uint64
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for next := uint64(1); ; next += 3 {
			_, err := l.Append(batchFrom(next, 3))
			if err == nil && next%20 == 2 {
				err = l.WriteSnapshot(next+2, func(w io.Writer) error { _, err := w.Write(record(next)); return err })
				err = errors.Join(err, l.DropBefore(next-10))
			}
			written.Store(next + 2)
			select {
			case <-stop:
				done <- err
				return
			default:
			}
			if err != nil {
				done <- err
				return
			}
		}
	}()
	for range 50 {
		before := written.Load()
		if report, err := Verify(l.dir); err != nil || report.Mark != MarkInUse || report.Last < before || report.TornBytes > 0 {
			t.Fatalf("%+v, %v; %d were written", report, err, before)
		}
		var last uint64
		before = written.Load()
		err := Dump(l.dir, func(e Entry) error {
			if last > 0 && e.Sequence <= last || string(e.Record) != string(record(e.Sequence)) {
				t.Fatalf("record %d follows %d", e.Sequence, last)
			}
			last = e.Sequence
			return nil
		})
		if err != nil || last < before {
			t.Fatalf("dumped up to %d of %d: %v", last, before, err)
		}
	}
	close(stop)
	must(t, <-done)
	mustClose(t, l)
}

// TestRepairCutsAtTheFirstDamage flips a bit of each frame in turn: records before it stay, the loss is reported,
// every byte is saved and the log is usable.
func TestRepairCutsAtTheFirstDamage(t *testing.T) {
	h := writeLog(t, 30)
	dir := filepath.Join(scratch(t), "log")
	batch := 0
	for _, name := range segmentNames(h.files) {
		offsets := frameOffsets(t, h.files[name])
		for _, at := range offsets[:len(offsets)-1] {
			writeFiles(t, dir, h.files)
			flip(t, filepath.Join(dir, name), at+50, 2)
			want := uint64(0)
			if batch > 0 {
				want = uint64(h.batches[batch-1])
			}
			r, err := Repair(dir, testOptions())
			if err != nil || r.Cause == nil || r.Last != want || r.LostFrom != want+1 || r.LostTo != uint64(len(h.records)) {
				t.Fatalf("batch %d: %+v, %v", batch, r, err)
			}
			if lost := savedBytes(t, r.SavedFiles) + logBytesOf(readFiles(t, dir)); lost != logBytesOf(h.files) {
				t.Fatalf("batch %d: %d bytes of %d are kept", batch, lost, logBytesOf(h.files))
			}
			checkAppends(t, dir, want)
			batch++
		}
	}
	t.Logf("%d repairs", batch)
}

func savedBytes(t *testing.T, paths []string) (n int) {
	t.Helper()
	for _, path := range paths {
		data, err := os.ReadFile(path)
		must(t, err)
		n += len(data)
	}
	return n
}

func logBytesOf(all map[string][]byte) (n int) {
	for _, name := range segmentNames(all) {
		n += len(all[name])
	}
	return n
}

// checkAppends opens a repaired log and appends to it.
func checkAppends(t *testing.T, dir string, last uint64) {
	t.Helper()
	l := mustOpen(t, dir, testOptions())
	if l.Last() != last || l.Recovery().TornBytes != 0 || l.Recovery().AmbiguousTail {
		t.Fatalf("last %d, want %d: %+v", l.Last(), last, l.Recovery())
	}
	must(t, checkLog(l))
	mustAppend(t, l, 20)
	mustClose(t, l)
	l = mustOpen(t, dir, testOptions())
	must(t, checkLog(l))
	mustClose(t, l)
}

// corruptFiles flips a bit in the first frame of one segment, or in every frame of several.
func corruptFiles(names ...string) func(map[string][]byte) {
	return func(f map[string][]byte) {
		for _, name := range names {
			f[name] = slices.Clone(f[name])
			for at := 50; at < len(f[name]); at += 40 {
				f[name][at] ^= 4
				if len(names) == 1 {
					break
				}
			}
		}
	}
}

func corruptEnd(name string) func(map[string][]byte) {
	return func(f map[string][]byte) {
		f[name] = slices.Clone(f[name])
		f[name][len(f[name])-6] ^= 4
	}
}

// TestRepairCrash stops a repair at each step: the next repair, or Open, succeeds.
func TestRepairCrash(t *testing.T) {
	dir := filepath.Join(scratch(t), "log")
	_, newer := compacted(t, dir)
	all := readFiles(t, dir)
	names := segmentNames(all)
	for what, change := range map[string]func(map[string][]byte){
		"front":   corruptFiles(names[0]),
		"restart": corruptFiles(names...),
		"tail":    corruptEnd(lastWithFrames(all)),
	} {
		broken := maps.Clone(all)
		change(broken)
		r, o := newCrashRecorder(t, func() uint64 { return newer })
		writeFiles(t, r.dir, broken)
		report, err := Repair(r.dir, o)
		must(t, err)
		next := filepath.Join(scratch(t), "log")
		for _, i := range r.images {
			writeFiles(t, next, i.files)
			again, err := Repair(next, testOptions())
			if err != nil || again.Last != report.Last {
				t.Errorf("%s, before %s: last %d, want %d: %v", what, i.before, again.Last, report.Last, err)
				continue
			}
			if err := i.checkRecovery(next); err != nil {
				t.Errorf("%s, before %s: %v", what, i.before, err)
			}
		}
		t.Logf("%s: %d crash points", what, len(r.images))
	}
}

func TestVerifyAndDumpChangeNothing(t *testing.T) {
	h := writeLog(t, 20, 9)
	dir := filepath.Join(scratch(t), "log")
	name := lastWithFrames(h.files)
	h.files[name] = append(slices.Clone(h.files[name]), "torn"...)
	writeFiles(t, dir, h.files)
	before := hashDir(t, dir)
	report, err := Verify(dir)
	want := Report{
		First: 1, Last: uint64(len(h.records)), Segments: len(segmentNames(h.files)), Batches: uint64(len(h.batches)),
		Records: uint64(len(h.records)), LogBytes: int64(logBytesOf(h.files) - 4), TornBytes: 4, Mark: MarkWhole,
	}
	if want.Snapshots = report.Snapshots; err != nil || len(report.Snapshots) != 1 || fmt.Sprint(report) != fmt.Sprint(want) {
		t.Errorf("%+v, %v", report, err)
	}
	var found [][]byte
	if err := Dump(dir, func(e Entry) error {
		f, _, bad := decodeEntry(h.files[filepath.Base(e.Segment)][e.Offset:])
		if bad != nil || e.Sequence < f.first || e.Sequence > f.last() || e.Sequence != uint64(len(found)+1) {
			t.Fatalf("%+v is not in frame %d", e, f.index)
		}
		found = append(found, slices.Clone(e.Record))
		return nil
	}); err != nil || !slices.EqualFunc(found, h.records, bytes.Equal) {
		t.Errorf("%d of %d records: %v", len(found), len(h.records), err)
	}
	if _, err := os.Stat(filepath.Join(dir, lockName)); !errors.Is(err, os.ErrNotExist) || hashDir(t, dir) != before {
		t.Errorf("the directory was changed: %v", err)
	}
	if _, err := Verify(filepath.Join(dir, "absent")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
	stop := errors.New("stop")
	if err := Dump(dir, func(Entry) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("visitor's error became %v", err)
	}
}

func TestExists(t *testing.T) {
	whole := filepath.Join(scratch(t), "log")
	compacted(t, whole)
	all := readFiles(t, whole)
	all[lockName], all[filepath.Base(segmentPath("", 1))+".END"] = nil, nil
	for name, content := range all {
		dir := scratch(t)
		must(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
		if found, err := Exists(dir); err != nil || found != (name != lockName) {
			t.Errorf("only %s: %t, %v", name, found, err)
		}
	}
	if found, err := Exists(filepath.Join(whole, markName)); found || err == nil {
		t.Errorf("a file: %t, %v", found, err)
	}
}
