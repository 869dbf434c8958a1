package httpapi

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"

	"github.com/klauspost/compress/flate"

	"github.com/tasard/tasard/httpapi/conn"
)

const (
	// gzipBytesMin is the size from which a body is compressed (Q11).
	gzipBytesMin = 1 << 10
	// packLevelKept is for bodies that are kept and sent again, packLevelOnce for those that are made for one request.
	packLevelKept = 6
	packLevelOnce = 1

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

// packBody compresses a body that is kept. From generatedAt on, less than a hundred bytes, it is stored, not compressed:
//
//	gzip header | deflate blocks of body[:stamp] | empty block to a byte border | stored last block: body[stamp:] | CRC-32, length
func packBody(d draft, second int64) *packedEdition {
	cut := d.stamp
	if cut == noStamp {
		cut = len(d.body)
	}
	p := newPacker(packLevelKept)
	packed := p.appendDeflated(appendGzipHeader(nil), d.body[:cut])
	headCRC := crc32.ChecksumIEEE(d.body[:cut])
	tail := d.body[cut:]
	packed = append(packed, 1) // last block, stored
	packed = binary.LittleEndian.AppendUint16(packed, uint16(len(tail)))
	packed = binary.LittleEndian.AppendUint16(packed, ^uint16(len(tail)))
	stamp := noStamp
	if d.stamp != noStamp {
		stamp = len(packed)
	}
	packed = append(packed, tail...)
	packed = appendGzipTrailer(packed, crc32.Update(headCRC, crc32.IEEETable, tail), len(d.body))
	return &packedEdition{edition{second, bytes.Clone(packed)}, stamp, headCRC}
}

// packer compresses one body after another. It is not safe for concurrent use.
type packer struct {
	out   bytesWriter
	flate *flate.Writer
	spare []byte // a buffer that changes places with the answer's own
}

// bytesWriter appends what it is given.
type bytesWriter struct{ bytes []byte }

func (w *bytesWriter) Write(p []byte) (int, error) {
	w.bytes = append(w.bytes, p...)
	return len(p), nil
}

func newPacker(level int) *packer {
	p := new(packer)
	writer, err := flate.NewWriter(&p.out, level)
	if err != nil {
		panic("httpapi: the compressor refuses its level: " + err.Error())
	}
	p.flate = writer
	return p
}

// appendDeflated appends deflate blocks for body, none of them the last, up to a byte border.
func (p *packer) appendDeflated(dst, body []byte) []byte {
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
func (p *packer) appendGzip(dst, body []byte) []byte {
	dst = p.appendDeflated(appendGzipHeader(dst), body)
	dst = append(dst, 1, 0, 0, 0xff, 0xff) // last block, stored, empty
	return appendGzipTrailer(dst, crc32.ChecksumIEEE(body), len(body))
}

// qualityMax is a quality of 1, in thousandths.
const qualityMax = 1000

// acceptsGzip reads Accept-Encoding (RFC 9110, section 12.5.3): gzip by its name or by "*", with a quality above 0 and not
// below that of identity where that is named. Without the header the answer is not compressed.
func acceptsGzip(lines [][]byte) bool {
	gzip, star, identity := -1, -1, -1
	for _, line := range lines {
		for len(line) > 0 {
			item := line
			if comma := bytes.IndexByte(line, ','); comma >= 0 {
				item, line = line[:comma], line[comma+1:]
			} else {
				line = nil
			}
			coding, quality := codingQuality(item)
			switch {
			case conn.EqualFold(coding, gzipCoding), conn.EqualFold(coding, "x-gzip"):
				gzip = max(gzip, quality)
			case string(coding) == "*":
				star = quality
			case conn.EqualFold(coding, "identity"):
				identity = quality
			}
		}
	}
	if gzip < 0 {
		gzip = star
	}
	return gzip > 0 && gzip >= identity
}

// codingQuality splits "gzip;q=0.5". A quality that cannot be read is 0: better not compressed than not understood.
func codingQuality(item []byte) (coding []byte, quality int) {
	semicolon := bytes.IndexByte(item, ';')
	if semicolon < 0 {
		return conn.TrimBlanks(item), qualityMax
	}
	weight := conn.TrimBlanks(item[semicolon+1:])
	if len(weight) < 2 || weight[0]|0x20 != 'q' || weight[1] != '=' {
		return conn.TrimBlanks(item[:semicolon]), 0
	}
	return conn.TrimBlanks(item[:semicolon]), thousandths(weight[2:])
}

// thousandths reads a quality: 0 or 1, with at most three decimals, and at most 1. Anything else is 0.
func thousandths(text []byte) int {
	const lengthMax = len("0.000")
	if len(text) == 0 || len(text) > lengthMax || text[0] != '0' && text[0] != '1' || len(text) > 1 && text[1] != '.' {
		return 0
	}
	quality := int(text[0]-'0') * qualityMax
	for place, c := 100, text[min(2, len(text)):]; len(c) > 0; place, c = place/10, c[1:] {
		if c[0] < '0' || c[0] > '9' {
			return 0
		}
		quality += int(c[0]-'0') * place
	}
	if quality > qualityMax {
		return 0
	}
	return quality
}
