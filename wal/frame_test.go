package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// entry is a frame as in a segment.
func entry(at position, records ...[]byte) []byte {
	f := appendFrame(nil, at, records)
	return append(binary.AppendUvarint(nil, uint64(len(f))), f...)
}

// resum corrects both checksums of a changed frame.
func resum(data []byte) []byte {
	_, prefix := binary.Uvarint(data)
	f := data[prefix:]
	binary.LittleEndian.PutUint32(f[36:], checksum(f[:36]))
	binary.LittleEndian.PutUint32(f[len(f)-4:], checksum(f[:len(f)-4]))
	return data
}

func TestFindFrame(t *testing.T) {
	f := appendFrame(nil, position{frame: 7, sequence: 9}, [][]byte{[]byte("one")})
	noise := []byte("tsWLtsWL" + strings.Repeat("noise", 20))
	data := append(bytes.Clone(noise), f...)
	if got, at := findFrame(append(data, noise...), 7); at != len(noise) || got.index != 7 {
		t.Errorf("found at %d", at)
	}
	if _, at := findFrame(data, 8); at != -1 {
		t.Errorf("found an older frame at %d", at)
	}
	if _, at := findFrame(data[:len(data)-1], 7); at != -1 {
		t.Errorf("found half a frame at %d", at)
	}
}

func FuzzFrame(f *testing.F) {
	whole := entry(origin, []byte("one"), []byte("two"))
	f.Add(whole)
	f.Add(whole[:30])
	f.Add(append(bytes.Clone(whole), whole...))
	f.Add([]byte{0})
	newer := bytes.Clone(whole)
	newer[5] = 9
	f.Add(resum(newer))
	f.Fuzz(func(t *testing.T, data []byte) {
		frame, n, bad := decodeEntry(data)
		findFrame(data, 1)
		if bad != nil {
			if n != 0 || bad.expected == "" || bad.found == "" || bad.at < 0 || bad.at > len(data) {
				t.Fatalf("a fault without a place: %d %+v", n, bad)
			}
			return
		}
		var records [][]byte
		if err := frame.records(func(_ uint64, r []byte) error {
			records = append(records, r)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		// Only output of the encoder is accepted.
		at := position{frame: frame.index, sequence: frame.first, chain: frame.chain}
		if again := entry(at, records...); !bytes.Equal(again, data[:n]) {
			t.Fatalf("encoded again: %x", again)
		}
	})
}

// TestNewerMarkSlotIsUsed writes both slots in each order, and with each of them missing.
func TestNewerMarkSlotIsUsed(t *testing.T) {
	old, newer := mark{3, 1, position{4, 9, 77}}, mark{4, 1, position{5, 12, 78}}
	nothing := make([]byte, markSlotBytes)
	for name, c := range map[string]struct {
		slots [][]byte
		want  mark
		state MarkState
	}{
		"newer first":        {[][]byte{newer.encode(), old.encode()}, newer, MarkWhole},
		"newer last":         {[][]byte{old.encode(), newer.encode()}, newer, MarkWhole},
		"alike":              {[][]byte{old.encode(), old.encode()}, old, MarkWhole},
		"first lost":         {[][]byte{nothing, old.encode()}, old, MarkHalf},
		"last lost":          {[][]byte{newer.encode(), nothing}, newer, MarkHalf},
		"both lost":          {[][]byte{nothing, nothing}, mark{}, MarkLost},
		"one slot":           {[][]byte{newer.encode()}, newer, MarkHalf},
		"three slots":        {[][]byte{old.encode(), newer.encode(), nothing}, newer, MarkHalf},
		"half a second slot": {[][]byte{old.encode(), newer.encode()[:100]}, old, MarkHalf},
		"nothing":            {nil, mark{}, MarkLost},
	} {
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, markName), slices.Concat(c.slots...), 0o600))
		if m, state, err := readMark(dir); m != c.want || state != c.state || err != nil {
			t.Errorf("%s: %+v, %s, %v; want %+v, %s", name, m, state, err, c.want, c.state)
		}
	}
	if m, state, err := readMark(t.TempDir()); m != (mark{}) || state != MarkLost || err != nil {
		t.Errorf("no file: %+v, %s, %v", m, state, err)
	}
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, markName), 0o700))
	if _, _, err := readMark(dir); err == nil {
		t.Error("a directory is taken for a mark")
	}
}

func TestLimitsAreAllowedAndNotMore(t *testing.T) {
	tiny := make([][]byte, BatchRecordsMax)
	for i := range tiny {
		tiny[i] = []byte{1}
	}
	largest := make([]byte, RecordBytesMax)
	full := [][]byte{largest, largest, largest, largest[:RecordBytesMax-4*recordPrefixBytes]}
	for name, records := range map[string][][]byte{"records": tiny, "bytes of a record": {largest}, "bytes of a batch": full} {
		if _, err := checkBatch(records); err != nil {
			t.Errorf("%s at the limit: %v", name, err)
		}
		data := entry(origin, records...)
		if f, n, bad := decodeEntry(data); bad != nil || n != len(data) || int(f.count) != len(records) {
			t.Errorf("%s at the limit: %+v", name, bad)
		}
	}
	if data := entry(origin, full...); len(data) > entryBytesMax {
		t.Errorf("an entry of %d bytes, at most %d", len(data), entryBytesMax)
	}
	full[3] = largest[:len(full[3])+1]
	l := mustOpen(t, t.TempDir(), testOptions())
	defer mustClose(t, l)
	for name, records := range map[string][][]byte{
		"records": append(tiny, []byte{1}), "bytes of a record": {append(largest, 1)}, "bytes of a batch": full, "an empty record": {{1}, {}},
	} {
		if _, err := l.Append(records); !errors.Is(err, ErrLimit) || l.Last() != 0 {
			t.Errorf("%s: one more is taken: %v", name, err)
		}
		if _, _, bad := decodeEntry(entry(origin, records...)); bad == nil {
			t.Errorf("%s: one more is read", name)
		}
	}
}

var update = flag.Bool("update", false, "write golden files that do not exist yet")

// TestW11_GoldenFormat1 opens a directory of format version 1 and writes the same bytes again. The fixture is never
// replaced, also not with -update; a later format gets its own.
func TestW11_GoldenFormat1(t *testing.T) {
	fixture := filepath.Join("testdata", "v1")
	if _, err := os.Stat(fixture); *update && errors.Is(err, os.ErrNotExist) {
		must(t, os.MkdirAll(fixture, 0o755))
		fresh := filepath.Join(t.TempDir(), "log")
		compacted(t, fresh)
		writeFiles(t, fixture, readFiles(t, fresh))
	}
	kept := readFiles(t, fixture)
	if len(segmentNames(kept)) < 2 {
		t.Fatalf("%d segments in %s", len(segmentNames(kept)), fixture)
	}
	dir := filepath.Join(t.TempDir(), "log")
	writeFiles(t, dir, kept)
	report, err := Verify(dir)
	if err != nil || report.Mark != MarkWhole || len(report.Snapshots) != 2 || report.TornBytes != 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	l := mustOpen(t, dir, testOptions())
	wantWhole(t, l)
	mustAppend(t, l, 3)
	mustClose(t, l)
	fresh := filepath.Join(t.TempDir(), "log")
	compacted(t, fresh)
	now := readFiles(t, fresh)
	if !maps.EqualFunc(now, kept, bytes.Equal) {
		t.Error("the same history is written with other bytes: that needs a new format version")
	}
}

// TestW11_NewerFormatIsRefused opens logs with a file of version 2.
func TestW11_NewerFormatIsRefused(t *testing.T) {
	dir := filepath.Join(scratch(t), "log")
	compacted(t, dir)
	all := readFiles(t, dir)
	first := segmentNames(all)[0]
	var newest string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if len(name) > len(snapshotPrefix) && name[:len(snapshotPrefix)] == snapshotPrefix {
			newest = name
		}
	}
	for name, change := range map[string]func([]byte){
		first: func(b []byte) {
			_, prefix := binary.Uvarint(b)
			b[prefix+4] = 2
			binary.LittleEndian.PutUint32(b[prefix+36:], checksum(b[prefix:][:36]))
		},
		newest: func(b []byte) {
			b[4] = 2
			binary.LittleEndian.PutUint32(b[16:], checksum(b[:16]))
		},
		markName: func(b []byte) {
			b[4] = 2
			binary.LittleEndian.PutUint32(b[508:], checksum(b[:508]))
		},
	} {
		broken := maps.Clone(all)
		broken[name] = slices.Clone(all[name])
		change(broken[name])
		writeFiles(t, dir, broken)
		before := hashDir(t, dir)
		for what, err := range map[string]error{
			"open": errorOf(Open(dir, testOptions())), "verify": errorOf(Verify(dir)), "repair": errorOf(Repair(dir, testOptions())),
		} {
			var format *FormatError
			if !errors.As(err, &format) || filepath.Base(format.File) != name || format.Version != 2 || format.Supported != 1 ||
				strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "newer") {
				t.Errorf("%s with %s: %v", what, name, err)
			}
		}
		if hashDir(t, dir) != before {
			t.Errorf("%s: the directory was changed", name)
		}
	}
}
