package rendered

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/binary"
	"hash/crc32"
	"sync"
)

// Gzip is the content coding of compressed bodies.
const Gzip = "gzip"

const (
	// GzipBytesMin is the minimum length of a body worth compressing.
	GzipBytesMin = 1 << 10

	gzipLevel = 6 // higher than for Compressor, because a body is compressed once and sent often
)

// Span is a part of a body: from offset Start up to End.
type Span struct{ Start, End int }

// SplicedGzip is a body compressed with gzip, except for holes: parts of constant length whose content differs between
// responses. In a response each hole is a stored (uncompressed) deflate block:
//
//	gzip header | deflate blocks up to a hole | the hole, stored | deflate blocks … | last block, empty | CRC-32, length
type SplicedGzip struct {
	pieces [][]byte // the deflate blocks before each hole and after the last
}

// NewSplicedGzip compresses a body, except for the holes.
func NewSplicedGzip(body []byte, holes []Span) *SplicedGzip {
	h, start := &SplicedGzip{}, 0
	var out bytes.Buffer
	// The writer of klauspost/compress would lose its history when it is flushed after few bytes.
	w, _ := flate.NewWriter(&out, gzipLevel)
	for i := 0; i <= len(holes); i++ {
		end := len(body)
		if i < len(holes) {
			end = holes[i].Start
		}
		_, _ = w.Write(body[start:end]) // bytes.Buffer returns no errors
		_ = w.Flush()                   // ends at a byte boundary
		h.pieces = append(h.pieces, bytes.Clone(out.Bytes()))
		out.Reset()
		if i < len(holes) { // zero bytes keep the distances right; no match refers to them, because JSON has none
			start = holes[i].End
			_, _ = w.Write(make([]byte, start-end))
			_ = w.Flush()
			out.Reset()
		}
	}
	return h
}

// Append appends body, compressed with gzip, to dst. body must equal the body of NewSplicedGzip except in the holes.
func (h *SplicedGzip) Append(dst, body []byte, holes []Span) []byte {
	const deflate, unknownSystem = 8, 255
	dst = append(dst, 0x1f, 0x8b, deflate, 0, 0, 0, 0, 0, 0, unknownSystem) // RFC 1952, without file name and time
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
	dst = binary.LittleEndian.AppendUint32(dst, crc32.ChecksumIEEE(body))
	return binary.LittleEndian.AppendUint32(dst, uint32(len(body))) //nolint:gosec // G115: modulo 2^32, as RFC 1952 says
}

// Compressor compresses bodies that are sent once. The zero value is ready for use. It is safe for concurrent use.
type Compressor struct{ writers sync.Pool }

// Compress returns a body compressed with gzip.
func (c *Compressor) Compress(body []byte) []byte {
	var out bytes.Buffer
	w, reused := c.writers.Get().(*gzip.Writer)
	if reused {
		w.Reset(&out)
	} else {
		w, _ = gzip.NewWriterLevel(&out, gzip.BestSpeed)
	}
	_, _ = w.Write(body) // bytes.Buffer returns no errors
	_ = w.Close()
	c.writers.Put(w)
	return out.Bytes()
}
