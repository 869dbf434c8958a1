package rendered

import (
	"bytes"
	"compress/gzip"
	"io"
	"testing"

	"pgregory.net/rapid"
)

// TestHoled: whatever fills the holes, the compressed body unpacks to the plain one.
func TestHoled(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		text := rapid.StringMatching(`[a-z"{},0-9ñ]{0,300}`)
		var body, other []byte
		var holes []Span
		shared := text.Draw(r, "shared")
		for range rapid.IntRange(0, 30).Draw(r, "holes") {
			piece := shared + text.Draw(r, "piece")
			body, other = append(body, piece...), append(other, piece...)
			n := rapid.IntRange(0, 60).Draw(r, "length")
			holes = append(holes, Span{len(body), len(body) + n})
			body = append(body, rapid.StringOfN(rapid.RuneFrom([]rune("0123456789.\"a")), n, n, -1).Draw(r, "a")...)
			other = append(other, rapid.StringOfN(rapid.RuneFrom([]rune("0123456789.\"a")), n, n, -1).Draw(r, "b")...)
		}
		body, other = append(body, shared...), append(other, shared...)
		packed := NewSplicedGzip(body, holes).Append(nil, other, holes)
		reader, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			r.Fatal(err)
		}
		if unpacked, err := io.ReadAll(reader); err != nil || !bytes.Equal(unpacked, other) {
			r.Fatalf("%q, want %q: %v", unpacked, other, err)
		}
	})
}
