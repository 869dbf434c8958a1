package cluster

import (
	"testing"

	"pgregory.net/rapid"
)

// TestFrameBatch adds messages in any order, some repeated, some missing: the batch is in order and without gaps.
func TestFrameBatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "messages")
		frames, sums := make([]frame, n+1), make([]uint32, n+1)
		for i := 1; i <= n; i++ {
			f := frame{sequence: uint64(i), previous: sums[i-1], record: []byte{byte(i)}}
			frames[i], sums[i] = decodeFrame(f.encode()), checksum(f.record)
		}
		start := rapid.IntRange(0, n-1).Draw(t, "start")
		r := frameBatch{last: uint64(start), checksum: sums[start]}
		for range rapid.IntRange(0, 60).Draw(t, "deliveries") {
			i := rapid.IntRange(1, n).Draw(t, "message")
			before := r.last
			err := r.add(frames[i])
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
