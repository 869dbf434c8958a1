package cluster

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"
)

func anyFrame(t *rapid.T) frame {
	f := frame{
		sequence: rapid.Uint64Min(1).Draw(t, "sequence"), previous: rapid.Uint32().Draw(t, "previous"),
		record: rapid.SliceOfN(rapid.Byte(), 1, 300).Draw(t, "record"),
	}
	copy(f.proposal[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "offer"))
	return f
}

// TestFrame_Whole decodes encoded frames, and detects a changed bit, a missing end and another sequence.
func TestFrame_Whole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := anyFrame(t)
		b := f.encode()
		got, err := decodeFrame(f.sequence, b)
		if err != nil || got.sequence != f.sequence || got.previous != f.previous || got.proposal != f.proposal || !bytes.Equal(got.record, f.record) {
			t.Fatalf("%+v came back as %+v, %v", f, got, err)
		}
		if _, err := decodeFrame(f.sequence+1, b); !errors.Is(err, errDamaged) {
			t.Fatalf("at another place: %v", err)
		}
		bit := rapid.IntRange(0, 8*len(b)-1).Draw(t, "bit")
		b[bit/8] ^= 1 << (bit % 8)
		if _, err := decodeFrame(f.sequence, b); !errors.Is(err, errDamaged) {
			t.Fatalf("bit %d changed: %v", bit, err)
		}
		b[bit/8] ^= 1 << (bit % 8)
		if _, err := decodeFrame(f.sequence, b[:rapid.IntRange(0, len(b)-1).Draw(t, "end")]); !errors.Is(err, errDamaged) {
			t.Fatalf("cut short: %v", err)
		}
	})
}

// TestFrameBatch adds messages in any order, some repeated, some missing: the batch is in order and without gaps.
func TestFrameBatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "messages")
		bodies, sums := make([][]byte, n+1), make([]uint32, n+1)
		for i := 1; i <= n; i++ {
			f := frame{sequence: uint64(i), previous: sums[i-1], record: []byte{byte(i)}}
			bodies[i], sums[i] = f.encode(), checksum(f.record)
		}
		start := rapid.IntRange(0, n-1).Draw(t, "start")
		r := frameBatch{last: uint64(start), checksum: sums[start]}
		for range rapid.IntRange(0, 60).Draw(t, "deliveries") {
			i := rapid.IntRange(1, n).Draw(t, "message")
			before := r.last
			err := r.add(uint64(i), bodies[i])
			if (err != nil) != (uint64(i) > before+1) {
				t.Fatalf("message %d after %d: %v", i, before, err)
			}
		}
		if got := uint64(start + len(r.frames)); got != r.last {
			t.Fatalf("%d frames after %d, the last is %d", len(r.frames), start, r.last)
		}
		for i, f := range r.frames {
			if f.record[0] != byte(start+i+1) {
				t.Fatalf("frame %d has record %d", i, f.record[0])
			}
		}
	})
}
