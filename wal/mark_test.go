package wal

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestTheNewerSlotOfTheMarkCounts writes both slots in each order and with each of them gone.
func TestTheNewerSlotOfTheMarkCounts(t *testing.T) {
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

// TestAmbiguousIsWhatTheMarkCannotSay goes through each state of the mark, with and without frames and a torn tail.
func TestAmbiguousIsWhatTheMarkCannotSay(t *testing.T) {
	for _, state := range []MarkState{MarkWhole, MarkHalf, MarkLost} {
		for frames := range uint64(3) {
			for _, torn := range []*tear{nil, {}} {
				for behind := range uint64(2) {
					x := examination{markState: state, mark: mark{end: position{frame: 9 - behind}}}
					x.extent.frames, x.extent.tear, x.extent.next = frames, torn, position{frame: 9}
					want := torn != nil && (state != MarkWhole || behind > 0) || state == MarkLost && frames > 0
					if got := x.ambiguous(); got != want {
						t.Errorf("mark %s, %d behind, %d frames, torn %v: %v", state, behind, frames, torn != nil, got)
					}
				}
			}
		}
	}
}

// TestLimitsAreAllowedAndNotMore writes frames at their limits and decodes them.
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
