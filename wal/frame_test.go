package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// entry is a frame as it lies in a segment.
func entry(at position, records ...[]byte) []byte {
	f := appendFrame(nil, at, records)
	return append(binary.AppendUvarint(nil, uint64(len(f))), f...)
}

func TestFrameRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 1, 300), 1, 50).Draw(t, "records")
		at := position{
			frame:    rapid.Uint64Range(1, 1<<60).Draw(t, "frame"),
			sequence: rapid.Uint64Range(1, 1<<60).Draw(t, "sequence"),
			chain:    rapid.Uint32().Draw(t, "chain"),
		}
		data := entry(at, records...)
		f, n, bad := decodeEntry(append(data, 0xff))
		if bad != nil || n != len(data) {
			t.Fatalf("%d of %d bytes: %+v", n, len(data), bad)
		}
		if bad := f.follows(at); bad != nil {
			t.Fatalf("%+v", bad)
		}
		i := 0
		must := f.records(func(seq uint64, r []byte) error {
			if seq != at.sequence+uint64(i) || !bytes.Equal(r, records[i]) {
				return fmt.Errorf("record %d is %d", i, seq)
			}
			i++
			return nil
		})
		if must != nil || i != len(records) || f.next().sequence != at.sequence+uint64(i) {
			t.Fatalf("%d of %d records: %v", i, len(records), must)
		}
	})
}

// resum corrects both checksums of a frame after its bytes were changed.
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
		// What is accepted is exactly what the encoder writes.
		at := position{frame: frame.index, sequence: frame.first, chain: frame.chain}
		if again := entry(at, records...); !bytes.Equal(again, data[:n]) {
			t.Fatalf("encoded again: %x", again)
		}
	})
}

func FuzzSnapshot(f *testing.F) {
	var whole bytes.Buffer
	if ours, theirs := encodeSnapshot(&whole, 7, stateAt(7)); ours != nil || theirs != nil {
		f.Fatal(errors.Join(ours, theirs))
	}
	f.Add(whole.Bytes())
	f.Add(whole.Bytes()[:25])
	f.Add([]byte(snapshotMagic))
	f.Fuzz(func(t *testing.T, data []byte) {
		seq, payload, bad, err := walkSnapshot(bytes.NewReader(data), int64(len(data)), nil)
		if err != nil {
			t.Fatalf("reading memory: %v", err)
		}
		if bad != nil {
			if bad.expected == "" || bad.found == "" || bad.at < 0 || bad.at > len(data) {
				t.Fatalf("a fault without a place: %+v", bad)
			}
			return
		}
		var again bytes.Buffer
		_, _ = encodeSnapshot(&again, seq, stateOf(data[snapshotHeaderBytes:][:payload]))
		if !bytes.Equal(again.Bytes(), data) {
			t.Fatalf("encoded again: %x", again.Bytes())
		}
	})
}

func FuzzMark(f *testing.F) {
	f.Add(mark{generation: 3, first: 1, end: position{4, 9, 77}}.encode())
	f.Add([]byte(markMagic))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, newer, ok := decodeMark(data)
		if ok && newer == 0 && len(data) == markSlotBytes {
			if again := m.encode(); !bytes.Equal(again[:48], data[:48]) {
				t.Fatalf("encoded again: %x", again)
			}
		}
	})
}

func TestDamageErrorIsOneLine(t *testing.T) {
	err := &DamageError{File: "f", Offset: 1, Sequence: 2, Expected: "a", Found: "b", Hint: "h"}
	want := "damaged log: f at offset 1, sequence 2: expected a, found b; h"
	if err.Error() != want {
		t.Errorf("%q", err.Error())
	}
	format := &FormatError{File: "f", Version: 2, Known: 1}
	if strings.Contains(format.Error(), "\n") || !strings.Contains(format.Error(), "newer") {
		t.Errorf("%q", format.Error())
	}
}
