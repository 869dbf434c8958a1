package httpapi

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"

	"github.com/klauspost/compress/flate"
)

const (
	// gzipBytesMin is the length of the smallest body that is compressed.
	gzipBytesMin  = 1 << 10
	gzipLevelKept = 6 // for a body that is sent in many responses
	gzipLevelOnce = 1 // for a body that is sent once

	gzipTrailerBytes = 8 // CRC-32 and length
)

// appendGzipHeader appends the header of a gzip member (RFC 1952) without file name and time.
func appendGzipHeader(dst []byte) []byte {
	const deflate, unknownSystem = 8, 255
	return append(dst, 0x1f, 0x8b, deflate, 0, 0, 0, 0, 0, 0, unknownSystem)
}

func appendGzipTrailer(dst []byte, sum uint32, length int) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, sum)
	return binary.LittleEndian.AppendUint32(dst, uint32(length))
}

func putChecksum(trailer []byte, sum uint32) { binary.LittleEndian.PutUint32(trailer, sum) }

// gzipEncoded compresses a body so that gzipVersion.patch can change generatedAt, the field with the time of the
// response, without compressing the body again. The bytes from that field to the end of the body, fewer than a
// hundred, are stored uncompressed:
//
//	gzip header | deflate blocks of body[:generatedAt] | empty block, which ends at a byte boundary
//	last block, stored: body[generatedAt:] | CRC-32, length
func gzipEncoded(d encodedBody, second int64) *gzipVersion {
	split := d.generatedAt
	if split == noGeneratedAt {
		split = len(d.body)
	}
	p := newGzipper(gzipLevelKept)
	packed := p.appendDeflated(appendGzipHeader(nil), d.body[:split])
	headCRC := crc32.ChecksumIEEE(d.body[:split])
	tail := d.body[split:]
	packed = append(packed, 1) // last block, stored
	packed = binary.LittleEndian.AppendUint16(packed, uint16(len(tail)))
	packed = binary.LittleEndian.AppendUint16(packed, ^uint16(len(tail)))
	offset := noGeneratedAt
	if d.generatedAt != noGeneratedAt {
		offset = len(packed)
	}
	packed = append(packed, tail...)
	packed = appendGzipTrailer(packed, crc32.Update(headCRC, crc32.IEEETable, tail), len(d.body))
	return &gzipVersion{bodyVersion{second, bytes.Clone(packed)}, offset, headCRC}
}

// gzipper is a reusable compressor. It is not safe for concurrent use.
type gzipper struct {
	out        bytesWriter
	flate      *flate.Writer
	swapBuffer []byte // gzipResponse exchanges it with the body of the response
}

// bytesWriter is an io.Writer that appends to a slice.
type bytesWriter struct{ bytes []byte }

func (w *bytesWriter) Write(p []byte) (int, error) {
	w.bytes = append(w.bytes, p...)
	return len(p), nil
}

func newGzipper(level int) *gzipper {
	p := new(gzipper)
	writer, err := flate.NewWriter(&p.out, level)
	if err != nil {
		panic("httpapi: invalid compression level: " + err.Error())
	}
	p.flate = writer
	return p
}

// appendDeflated appends body as deflate blocks that end at a byte boundary. None of them is marked as the last block.
func (p *gzipper) appendDeflated(dst, body []byte) []byte {
	p.out.bytes = dst
	p.flate.Reset(&p.out)
	_, _ = p.flate.Write(body) // bytesWriter returns no errors
	_ = p.flate.Flush()
	packed := p.out.bytes
	p.out.bytes = nil
	return packed
}

// appendGzip appends body, compressed with gzip.
func (p *gzipper) appendGzip(dst, body []byte) []byte {
	dst = p.appendDeflated(appendGzipHeader(dst), body)
	dst = append(dst, 1, 0, 0, 0xff, 0xff) // last block, stored, empty
	return appendGzipTrailer(dst, crc32.ChecksumIEEE(body), len(body))
}
