package wal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Limits of one append. They also limit the memory that a reader allocates if a length is damaged.
const (
	RecordBytesMax  = 1 << 20 // bytes of one record
	BatchBytesMax   = 4 << 20 // bytes of one batch, including 4 bytes for the length of each record
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
	entryPrefixMax    = binary.MaxVarintLen32 // bytes of the length that tidwall/wal writes before each frame
	entryBytesMax     = entryPrefixMax + frameBytesMax
)

// The compiler checks relations between the limits: a negative constant can't be a uint.
const (
	_ = uint(BatchBytesMax - RecordBytesMax - recordPrefixBytes)
	_ = uint(BatchBytesMax - BatchRecordsMax*(recordPrefixBytes+1))
	_ = uint(1<<28 - frameBytesMax) // a frame's length fits four bytes of uvarint
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(data []byte) uint32 { return crc32.Checksum(data, castagnoli) }

// position is the place of a frame in the log. The frame's header must contain these values.
type position struct {
	frame    uint64 // index of the frame, from 1
	sequence uint64 // sequence number of the frame's first record, from 1
	chain    uint32 // checksum of the previous frame, which links the frames; 0 before frame 1
}

var origin = position{frame: 1, sequence: 1}

// frame is one decoded batch of records. Its payload aliases the decoded buffer.
type frame struct {
	index    uint64
	first    uint64 // sequence number of the first record
	count    uint32
	chain    uint32
	checksum uint32
	payload  []byte
}

func (f frame) last() uint64 { return f.first + uint64(f.count) - 1 }

// next returns the position of the frame after this one.
func (f frame) next() position {
	return position{frame: f.index + 1, sequence: f.last() + 1, chain: f.checksum}
}

// appendFrame appends a frame with the records to dst. The records must be within the limits.
func appendFrame(dst []byte, pos position, records [][]byte) []byte {
	start := len(dst)
	payload := 0
	for _, r := range records {
		payload += recordPrefixBytes + len(r)
	}
	dst = append(dst, frameMagic...)
	dst = append(dst, FormatVersion, 0, 0, 0)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(records)))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(payload))
	dst = binary.LittleEndian.AppendUint64(dst, pos.frame)
	dst = binary.LittleEndian.AppendUint64(dst, pos.sequence)
	dst = binary.LittleEndian.AppendUint32(dst, pos.chain)
	dst = binary.LittleEndian.AppendUint32(dst, checksum(dst[start:]))
	for _, r := range records {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(r)))
		dst = append(dst, r...)
	}
	return binary.LittleEndian.AppendUint32(dst, checksum(dst[start:]))
}

// decodeEntry decodes the entry at the start of data: a length written by tidwall/wal, and a frame. It returns the
// frame and the entry's size. It does not check the frame's position; see checkPosition.
func decodeEntry(data []byte) (frame, int, *formatFault) {
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
	f, fault := decodeFrame(body, int(size))
	if fault != nil {
		fault.at += prefix
		return f, 0, fault
	}
	return f, prefix + int(size), nil
}

// decodeFrame decodes a frame of size bytes. data is shorter than size if the file ends early. With a valid header, the
// result contains the header's fields even after a fault in the rest.
func decodeFrame(data []byte, size int) (frame, *formatFault) {
	f, payload, fault := decodeHeader(data)
	if fault != nil {
		return frame{}, fault
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

// decodeHeader decodes a header. It returns a frame without payload and the length of the payload.
func decodeHeader(data []byte) (frame, int, *formatFault) {
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
	if fault := checkVersion(data[4:8]); fault != nil {
		fault.at += 4
		return frame{}, 0, fault
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

// checkVersion checks a version byte and the three zero bytes after it. The magic, these four bytes and the checksum
// of the header are at the same place in every format version.
func checkVersion(data []byte) *formatFault {
	if data[0] > FormatVersion {
		return &formatFault{expected: "a known format version", found: fmt.Sprint(data[0]), version: data[0]}
	}
	if data[0] == 0 || data[1] != 0 || data[2] != 0 || data[3] != 0 {
		return newFault(0, fmt.Sprintf("version %d and three zero bytes", FormatVersion), fmt.Sprintf("% x", data[:4]))
	}
	return nil
}

// checkPayload checks that the records fill the payload exactly. A fault here is damage and not a torn tail (an
// incomplete last write), because the checksum is right.
func checkPayload(f frame) *formatFault {
	records := f.payload
	for i := range f.count {
		offset := frameHeaderBytes + len(f.payload) - len(records)
		if len(records) < recordPrefixBytes {
			return newFault(offset, fmt.Sprintf("%d records", f.count), fmt.Sprintf("the end after %d", i))
		}
		n := binary.LittleEndian.Uint32(records)
		if n == 0 || n > RecordBytesMax || int(n) > len(records)-recordPrefixBytes {
			return newFault(offset, fmt.Sprintf("a record of 1 to %d bytes", RecordBytesMax), fmt.Sprintf("a length of %d", n))
		}
		records = records[recordPrefixBytes+int(n):]
	}
	if len(records) != 0 {
		return newFault(frameHeaderBytes+len(f.payload)-len(records), "the end of the payload", fmt.Sprintf("%d bytes more", len(records)))
	}
	return nil
}

// records calls visit for each record of the frame. A record is a slice of the decoded buffer.
func (f frame) records(visit func(sequence uint64, record []byte) error) error {
	remaining := f.payload
	for sequence := f.first; len(remaining) > 0; sequence++ {
		n := int(binary.LittleEndian.Uint32(remaining))
		end := recordPrefixBytes + n
		if err := visit(sequence, remaining[recordPrefixBytes:end:end]); err != nil {
			return err
		}
		remaining = remaining[end:]
	}
	return nil
}

// checkPosition checks the frame's position. A fault here is damage and not a torn tail, because the header's checksum
// is right.
func (f frame) checkPosition(want position) *formatFault {
	switch {
	case f.index != want.frame:
		return newFault(16, fmt.Sprintf("frame %d", want.frame), fmt.Sprintf("frame %d", f.index))
	case f.first != want.sequence:
		return newFault(24, fmt.Sprintf("sequence %d", want.sequence), fmt.Sprintf("sequence %d", f.first))
	case f.chain != want.chain:
		return newFault(32, fmt.Sprintf("chain %08x", want.chain), fmt.Sprintf("chain %08x", f.chain))
	}
	return nil
}

// findFrame searches data, at every byte, for a valid frame with an index of at least indexMin. It returns the frame
// and its offset, or -1. A fault with a valid frame after it is damage and not a torn tail.
func findFrame(data []byte, indexMin uint64) (frame, int) {
	for offset := 0; ; offset++ {
		i := bytes.Index(data[offset:], []byte(frameMagic))
		if i < 0 {
			return frame{}, -1
		}
		offset += i
		f, payload, fault := decodeHeader(data[offset:])
		if fault != nil || f.index < indexMin {
			continue
		}
		if f, fault = decodeFrame(data[offset:], frameHeaderBytes+payload+frameTrailerBytes); fault == nil {
			return f, offset
		}
	}
}
