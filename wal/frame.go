package wal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Limits of one append. They bound the memory that a damaged length can make a reader allocate.
const (
	RecordBytesMax  = 1 << 20 // bytes of one record
	BatchBytesMax   = 4 << 20 // bytes of one batch: its records and a 4-byte length for each
	BatchRecordsMax = 1 << 16 // records of one batch
)

// FormatVersion is the version of frames, marks and snapshots that this package writes, and the newest that it reads.
const FormatVersion = 1

const (
	frameMagic        = "tsWL"
	frameHeaderBytes  = 40
	frameTrailerBytes = 4
	recordPrefixBytes = 4
	frameBytesMin     = frameHeaderBytes + recordPrefixBytes + 1 + frameTrailerBytes
	frameBytesMax     = frameHeaderBytes + BatchBytesMax + frameTrailerBytes
	entryPrefixMax    = binary.MaxVarintLen32 // the library's length before each frame, in bytes
	entryBytesMax     = entryPrefixMax + frameBytesMax
)

// Relations between the limits, checked by the compiler: each constant must not be negative.
const (
	_ = uint(BatchBytesMax - RecordBytesMax - recordPrefixBytes)
	_ = uint(BatchBytesMax - BatchRecordsMax*(recordPrefixBytes+1))
	_ = uint(1<<28 - frameBytesMax) // a frame's length fits four bytes of uvarint
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(data []byte) uint32 { return crc32.Checksum(data, castagnoli) }

// position is where the next frame belongs.
type position struct {
	frame    uint64 // index of the frame, from 1
	sequence uint64 // of its first record, from 1
	chain    uint32 // checksum of the frame before it, 0 before frame 1
}

var origin = position{frame: 1, sequence: 1}

// frame is one decoded batch. Its payload is part of the decoded buffer.
type frame struct {
	index    uint64
	first    uint64 // sequence of the first record
	count    uint32
	chain    uint32
	checksum uint32
	payload  []byte
}

// last is the sequence of the frame's last record.
func (f frame) last() uint64 { return f.first + uint64(f.count) - 1 }

// next is the position after the frame.
func (f frame) next() position {
	return position{frame: f.index + 1, sequence: f.last() + 1, chain: f.checksum}
}

// appendFrame appends a frame with the records to dst. The records must be within the limits.
func appendFrame(dst []byte, at position, records [][]byte) []byte {
	start := len(dst)
	payload := 0
	for _, r := range records {
		payload += recordPrefixBytes + len(r)
	}
	dst = append(dst, frameMagic...)
	dst = append(dst, FormatVersion, 0, 0, 0)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(records)))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(payload))
	dst = binary.LittleEndian.AppendUint64(dst, at.frame)
	dst = binary.LittleEndian.AppendUint64(dst, at.sequence)
	dst = binary.LittleEndian.AppendUint32(dst, at.chain)
	dst = binary.LittleEndian.AppendUint32(dst, checksum(dst[start:]))
	for _, r := range records {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(r)))
		dst = append(dst, r...)
	}
	return binary.LittleEndian.AppendUint32(dst, checksum(dst[start:]))
}

// decodeEntry reads the library's length and the frame after it from the start of data, and returns the size of both.
// It does not check the frame's position; see checkPosition.
func decodeEntry(data []byte) (frame, int, *fault) {
	size, prefix := binary.Uvarint(data[:min(len(data), entryPrefixMax)])
	if prefix <= 0 {
		return frame{}, 0, tornFault(0, "the length of a frame", fmt.Sprintf("%d other bytes", len(data)))
	}
	if size < frameBytesMin || size > frameBytesMax {
		return frame{}, 0, tornFault(0, fmt.Sprintf("a frame of %d to %d bytes", frameBytesMin, frameBytesMax), fmt.Sprintf("a length of %d", size))
	}
	if prefix != len(binary.AppendUvarint(nil, size)) {
		return frame{}, 0, tornFault(0, "the shortest form of a length", fmt.Sprintf("%d bytes for %d", prefix, size))
	}
	body := data[prefix:]
	if uint64(len(body)) > size {
		body = body[:size]
	}
	f, bad := decodeFrame(body, int(size))
	if bad != nil {
		bad.at += prefix
		return f, 0, bad
	}
	return f, prefix + int(size), nil
}

// decodeFrame reads a frame of size bytes from data, which is shorter if the file ends early. After an intact header
// the frame's header fields are set even with a fault.
func decodeFrame(data []byte, size int) (frame, *fault) {
	f, payload, bad := decodeHeader(data)
	if bad != nil {
		return frame{}, bad
	}
	if want := frameHeaderBytes + payload + frameTrailerBytes; want != size {
		return f, newFault(12, fmt.Sprintf("a frame of %d bytes", size), fmt.Sprintf("a header that says %d", want))
	}
	if len(data) < size {
		return f, tornFault(len(data), fmt.Sprintf("a frame of %d bytes", size), fmt.Sprintf("the end after %d", len(data)))
	}
	end := size - frameTrailerBytes
	f.checksum = binary.LittleEndian.Uint32(data[end:])
	if sum := checksum(data[:end]); sum != f.checksum {
		return f, tornFault(end, fmt.Sprintf("checksum %08x", f.checksum), fmt.Sprintf("%08x", sum))
	}
	f.payload = data[frameHeaderBytes:end]
	return f, checkPayload(f)
}

// decodeHeader reads the header and returns the frame without payload, and the payload's length.
func decodeHeader(data []byte) (frame, int, *fault) {
	if len(data) < frameHeaderBytes {
		return frame{}, 0, tornFault(len(data), fmt.Sprintf("a frame header of %d bytes", frameHeaderBytes), fmt.Sprintf("the end after %d", len(data)))
	}
	if string(data[:4]) != frameMagic {
		return frame{}, 0, tornFault(0, fmt.Sprintf("%q", frameMagic), fmt.Sprintf("%q", data[:4]))
	}
	stored := binary.LittleEndian.Uint32(data[36:])
	if sum := checksum(data[:36]); sum != stored {
		return frame{}, 0, tornFault(36, fmt.Sprintf("header checksum %08x", stored), fmt.Sprintf("%08x", sum))
	}
	if bad := checkVersion(data[4:8]); bad != nil {
		bad.at += 4
		return frame{}, 0, bad
	}
	f := frame{
		count: binary.LittleEndian.Uint32(data[8:]),
		index: binary.LittleEndian.Uint64(data[16:]),
		first: binary.LittleEndian.Uint64(data[24:]),
		chain: binary.LittleEndian.Uint32(data[32:]),
	}
	payload := binary.LittleEndian.Uint32(data[12:])
	if f.count == 0 || f.count > BatchRecordsMax || payload > BatchBytesMax {
		return f, 0, newFault(8, "a batch within the limits", fmt.Sprintf("%d records in %d bytes", f.count, payload))
	}
	if f.index == 0 || f.first == 0 || f.last() < f.first {
		return f, 0, newFault(16, "indices from 1", fmt.Sprintf("frame %d with record %d", f.index, f.first))
	}
	return f, int(payload), nil
}

// checkVersion checks a version byte and the three zero bytes after it. Every format version keeps the magic, these
// four bytes and the header's checksum in their places.
func checkVersion(data []byte) *fault {
	if data[0] > FormatVersion {
		return &fault{expected: "a known format version", found: fmt.Sprint(data[0]), version: data[0]}
	}
	if data[0] == 0 || data[1] != 0 || data[2] != 0 || data[3] != 0 {
		return newFault(0, fmt.Sprintf("version %d and three zero bytes", FormatVersion), fmt.Sprintf("% x", data[:4]))
	}
	return nil
}

// checkPayload verifies that the records fill the payload exactly. A fault here is not torn: the checksum was right.
func checkPayload(f frame) *fault {
	rest := f.payload
	for i := range f.count {
		at := frameHeaderBytes + len(f.payload) - len(rest)
		if len(rest) < recordPrefixBytes {
			return newFault(at, fmt.Sprintf("%d records", f.count), fmt.Sprintf("the end after %d", i))
		}
		n := binary.LittleEndian.Uint32(rest)
		if n == 0 || n > RecordBytesMax || int(n) > len(rest)-recordPrefixBytes {
			return newFault(at, fmt.Sprintf("a record of 1 to %d bytes", RecordBytesMax), fmt.Sprintf("a length of %d", n))
		}
		rest = rest[recordPrefixBytes+int(n):]
	}
	if len(rest) != 0 {
		return newFault(frameHeaderBytes+len(f.payload)-len(rest), "the end of the payload", fmt.Sprintf("%d bytes more", len(rest)))
	}
	return nil
}

// records calls visit for each record of a decoded frame. The record is part of the frame's buffer.
func (f frame) records(visit func(sequence uint64, record []byte) error) error {
	rest := f.payload
	for sequence := f.first; len(rest) > 0; sequence++ {
		n := int(binary.LittleEndian.Uint32(rest))
		end := recordPrefixBytes + n
		if err := visit(sequence, rest[recordPrefixBytes:end:end]); err != nil {
			return err
		}
		rest = rest[end:]
	}
	return nil
}

// checkPosition checks that the frame belongs at the position. A difference is not torn: the header's checksum was
// right.
func (f frame) checkPosition(at position) *fault {
	switch {
	case f.index != at.frame:
		return newFault(16, fmt.Sprintf("frame %d", at.frame), fmt.Sprintf("frame %d", f.index))
	case f.first != at.sequence:
		return newFault(24, fmt.Sprintf("sequence %d", at.sequence), fmt.Sprintf("sequence %d", f.first))
	case f.chain != at.chain:
		return newFault(32, fmt.Sprintf("chain %08x", at.chain), fmt.Sprintf("chain %08x", f.chain))
	}
	return nil
}

// findFrame searches every byte of data for an intact frame with an index of at least from, and returns its offset, or
// -1. Such a frame after damage proves that the damage is not a torn tail.
func findFrame(data []byte, from uint64) (frame, int) {
	for at := 0; ; at++ {
		i := bytes.Index(data[at:], []byte(frameMagic))
		if i < 0 {
			return frame{}, -1
		}
		at += i
		f, payload, bad := decodeHeader(data[at:])
		if bad != nil || f.index < from {
			continue
		}
		if f, bad = decodeFrame(data[at:], frameHeaderBytes+payload+frameTrailerBytes); bad == nil {
			return f, at
		}
	}
}
