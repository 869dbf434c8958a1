package rendered

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"

	"github.com/klauspost/compress/flate"
)

// Gzip is the content coding of compressed bodies.
const Gzip = "gzip"

const (
	// GzipBytesMin is the length of the smallest body that is worth compressing.
	GzipBytesMin  = 1 << 10
	gzipLevelKept = 6 // for a body that is sent in many responses
	gzipLevelOnce = 1 // for a body that is sent once

	gzipTrailerBytes = 8 // CRC-32 and length
)

// gzipVersion is a version compressed with gzip. The last block begins at generatedAt and is not compressed, so that
// setTime can write a new time and checksum.
type gzipVersion struct {
	version
	generatedAt int    // offset of its value in the compressed body, or NoGeneratedAt
	headCRC     uint32 // checksum of the uncompressed body before generatedAt
}

// compress compresses a body so that setTime can change generatedAt without compressing the body again. The bytes from
// that field to the end of the body, fewer than a hundred, are stored uncompressed:
//
//	gzip header | deflate blocks of Body[:GeneratedAt] | empty block, which ends at a byte boundary
//	last block, stored: Body[GeneratedAt:] | CRC-32, length
func compress(e Encoded, second int64) *gzipVersion {
	split := e.GeneratedAt
	if split == NoGeneratedAt {
		split = len(e.Body)
	}
	packed := newCompressor(gzipLevelKept).appendDeflated(appendGzipHeader(nil), e.Body[:split])
	headCRC := crc32.ChecksumIEEE(e.Body[:split])
	tail := e.Body[split:]
	packed = append(packed, 1)  // last block, stored
	length := uint16(len(tail)) //nolint:gosec // G115: fewer than a hundred
	packed = binary.LittleEndian.AppendUint16(packed, length)
	packed = binary.LittleEndian.AppendUint16(packed, ^length)
	offset := NoGeneratedAt
	if e.GeneratedAt != NoGeneratedAt {
		offset = len(packed)
	}
	packed = append(packed, tail...)
	packed = appendGzipTrailer(packed, crc32.Update(headCRC, crc32.IEEETable, tail), len(e.Body))
	return &gzipVersion{version{second, bytes.Clone(packed)}, offset, headCRC}
}

// setTime writes a new generatedAt and the checksum.
func (v *gzipVersion) setTime(text Text) {
	copy(v.body[v.generatedAt:], text[:])
	trailer := len(v.body) - gzipTrailerBytes
	sum := crc32.Update(v.headCRC, crc32.IEEETable, v.body[v.generatedAt:trailer])
	binary.LittleEndian.PutUint32(v.body[trailer:], sum)
}

// Compressor compresses bodies that are sent once. It is reusable, but not safe for concurrent use.
type Compressor struct {
	out    bytesWriter
	flate  *flate.Writer
	buffer []byte // for the next result of Swap
}

// bytesWriter is an io.Writer that appends to a slice.
type bytesWriter struct{ bytes []byte }

func (w *bytesWriter) Write(p []byte) (int, error) {
	w.bytes = append(w.bytes, p...)
	return len(p), nil
}

// NewCompressor returns a Compressor.
func NewCompressor() *Compressor { return newCompressor(gzipLevelOnce) }

func newCompressor(level int) *Compressor {
	c := new(Compressor)
	writer, err := flate.NewWriter(&c.out, level)
	if err != nil {
		panic("rendered: invalid compression level: " + err.Error())
	}
	c.flate = writer
	return c
}

// Append appends body, compressed with gzip, to dst.
func (c *Compressor) Append(dst, body []byte) []byte {
	dst = c.appendDeflated(appendGzipHeader(dst), body)
	dst = append(dst, 1, 0, 0, 0xff, 0xff) // last block, stored, empty
	return appendGzipTrailer(dst, crc32.ChecksumIEEE(body), len(body))
}

// Swap compresses body into a buffer of the Compressor, and keeps body as the buffer of the next call. Danger: the
// caller must not use body afterwards.
func (c *Compressor) Swap(body []byte) []byte {
	packed := c.Append(c.buffer[:0], body)
	c.buffer = body
	return packed
}

// appendDeflated appends body as deflate blocks that end at a byte boundary. None of them is marked as the last block.
func (c *Compressor) appendDeflated(dst, body []byte) []byte {
	c.out.bytes = dst
	c.flate.Reset(&c.out)
	_, _ = c.flate.Write(body) // bytesWriter returns no errors
	_ = c.flate.Flush()
	packed := c.out.bytes
	c.out.bytes = nil
	return packed
}

// appendGzipHeader appends the header of a gzip member (RFC 1952) without file name and time.
func appendGzipHeader(dst []byte) []byte {
	const deflate, unknownSystem = 8, 255
	return append(dst, 0x1f, 0x8b, deflate, 0, 0, 0, 0, 0, 0, unknownSystem)
}

func appendGzipTrailer(dst []byte, sum uint32, length int) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, sum)
	return binary.LittleEndian.AppendUint32(dst, uint32(length)) //nolint:gosec // G115: modulo 2^32, as RFC 1952 says
}
