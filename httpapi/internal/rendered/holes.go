package rendered

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"hash/crc32"
)

// Span is a part of a body: from offset Start up to End.
type Span struct{ Start, End int }

// Holed is a compressed body with holes: parts whose content differs in each response, but not their lengths. The
// rest is compressed once. In a response each hole is a stored (uncompressed) deflate block.
type Holed struct {
	pieces [][]byte // the deflate blocks before each hole and after the last
}

// NewHoled compresses a body around its holes.
func NewHoled(body []byte, holes []Span) *Holed {
	h, start := &Holed{}, 0
	var out bytes.Buffer
	// That of the standard library: klauspost's forgets what it has seen when it is flushed with few bytes.
	w, _ := flate.NewWriter(&out, gzipLevelKept)
	for i := 0; i <= len(holes); i++ {
		end := len(body)
		if i < len(holes) {
			end = holes[i].Start
		}
		_, _ = w.Write(body[start:end]) // bytes.Buffer returns no errors
		_ = w.Flush()                   // ends at a byte boundary
		h.pieces = append(h.pieces, bytes.Clone(out.Bytes()))
		out.Reset()
		if i < len(holes) { // keeps the distances right; JSON has no zero bytes, so nothing refers to these
			start = holes[i].End
			_, _ = w.Write(make([]byte, start-end))
			_ = w.Flush()
			out.Reset()
		}
	}
	return h
}

// Append appends body, compressed with gzip, to dst. It differs from the body of NewHoled only in the content of holes.
func (h *Holed) Append(dst, body []byte, holes []Span) []byte {
	dst = appendGzipHeader(dst)
	for i, piece := range h.pieces {
		if dst = append(dst, piece...); i < len(holes) {
			text := body[holes[i].Start:holes[i].End]
			length := uint16(len(text)) //nolint:gosec // G115: an amount or a time
			dst = binary.LittleEndian.AppendUint16(append(dst, 0), length)
			dst = binary.LittleEndian.AppendUint16(dst, ^length)
			dst = append(dst, text...)
		}
	}
	dst = append(dst, 1, 0, 0, 0xff, 0xff) // last block, stored, empty
	return appendGzipTrailer(dst, crc32.ChecksumIEEE(body), len(body))
}
