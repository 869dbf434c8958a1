package httpapi

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"

	"github.com/klauspost/compress/flate"
)

const (
	// gzipBytesMin is the size from which a body is compressed.
	gzipBytesMin = 1 << 10
	// gzipLevelKept is for bodies that are kept and sent again, gzipLevelOnce for those that are made for one request.
	gzipLevelKept = 6
	gzipLevelOnce = 1

	gzipTrailerBytes = 8 // CRC-32 and length
)

// appendGzipHeader appends the ten bytes of a gzip member without name and time (RFC 1952).
func appendGzipHeader(dst []byte) []byte {
	const deflate, unknownSystem = 8, 255
	return append(dst, 0x1f, 0x8b, deflate, 0, 0, 0, 0, 0, 0, unknownSystem)
}

func appendGzipTrailer(dst []byte, sum uint32, length int) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, sum)
	return binary.LittleEndian.AppendUint32(dst, uint32(length))
}

func putChecksum(trailer []byte, sum uint32) { binary.LittleEndian.PutUint32(trailer, sum) }

// gzipEncoded compresses a body that is kept. From generatedAt on, less than a hundred bytes, it is stored, not
// compressed:
//
//	gzip header | deflate blocks of body[:at] | empty block to a byte border
//	stored last block: body[at:] | CRC-32, length
func gzipEncoded(d encodedBody, second int64) *gzipVersion {
	cut := d.generatedAt
	if cut == noGeneratedAt {
		cut = len(d.body)
	}
	p := newGzipper(gzipLevelKept)
	packed := p.appendDeflated(appendGzipHeader(nil), d.body[:cut])
	headCRC := crc32.ChecksumIEEE(d.body[:cut])
	tail := d.body[cut:]
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

// gzipper compresses one body after another. It is not safe for concurrent use.
type gzipper struct {
	out        bytesWriter
	flate      *flate.Writer
	swapBuffer []byte // a buffer that changes places with the answer's own
}

// bytesWriter appends what it is given.
type bytesWriter struct{ bytes []byte }

func (w *bytesWriter) Write(p []byte) (int, error) {
	w.bytes = append(w.bytes, p...)
	return len(p), nil
}

func newGzipper(level int) *gzipper {
	p := new(gzipper)
	writer, err := flate.NewWriter(&p.out, level)
	if err != nil {
		panic("httpapi: the compressor refuses its level: " + err.Error())
	}
	p.flate = writer
	return p
}

// appendDeflated appends deflate blocks for body, none of them the last, up to a byte border.
func (p *gzipper) appendDeflated(dst, body []byte) []byte {
	p.out.bytes = dst
	p.flate.Reset(&p.out)
	// The writer below cannot fail.
	_, _ = p.flate.Write(body)
	_ = p.flate.Flush()
	packed := p.out.bytes
	p.out.bytes = nil
	return packed
}

// appendGzip appends the gzip form of body.
func (p *gzipper) appendGzip(dst, body []byte) []byte {
	dst = p.appendDeflated(appendGzipHeader(dst), body)
	dst = append(dst, 1, 0, 0, 0xff, 0xff) // last block, stored, empty
	return appendGzipTrailer(dst, crc32.ChecksumIEEE(body), len(body))
}
