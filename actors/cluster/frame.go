package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

const (
	frameMagic        = "tsCL"
	frameVersion      = 1
	frameHeaderBytes  = 40
	frameTrailerBytes = 4
	frameBytesMax     = frameHeaderBytes + recordBytesMax + frameTrailerBytes
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// proposalID is the unique ID of a proposal: a record that a node wants to append to the stream. By this ID the node
// recognizes its record in the stream.
type proposalID [16]byte

// frame is the data of one entry of the stream (the log that the nodes share): a record with
// its checksums. doc.go shows the format.
type frame struct {
	sequence uint64
	previous uint32 // checksum of the previous record; 0 in the first frame
	proposal proposalID
	record   []byte
}

func (f *frame) encode() []byte {
	b := make([]byte, 0, frameHeaderBytes+len(f.record)+frameTrailerBytes)
	b = append(b, frameMagic...)
	b = append(b, frameVersion, 0, 0, 0)
	b = binary.LittleEndian.AppendUint64(b, f.sequence)
	b = binary.LittleEndian.AppendUint32(b, f.previous)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(f.record)))
	b = append(b, f.proposal[:]...)
	b = append(b, f.record...)
	return binary.LittleEndian.AppendUint32(b, checksum(b))
}

var errDamaged = errors.New("damaged stream")

// damageError returns an error that describes the damage and says what an operator should do.
func damageError(sequence uint64, expected, got string, args ...any) error {
	return fmt.Errorf("%w: message %d: expected %s, found %s; if the other nodes go on, stop this one, remove its stream "+
		"directory and start it", errDamaged, sequence, expected, fmt.Sprintf(got, args...))
}

// decodeFrame decodes and checks the message at a sequence. The record in the result shares its memory with b.
func decodeFrame(sequence uint64, b []byte) (frame, error) {
	damaged := func(expected, got string, args ...any) (frame, error) {
		return frame{}, damageError(sequence, expected, got, args...)
	}
	if len(b) <= frameHeaderBytes+frameTrailerBytes || len(b) > frameBytesMax {
		return damaged("a whole frame", "%d bytes", len(b))
	}
	end := len(b) - frameTrailerBytes
	if stored, sum := binary.LittleEndian.Uint32(b[end:]), checksum(b[:end]); stored != sum {
		return damaged(fmt.Sprintf("checksum %08x", stored), "%08x", sum)
	}
	if string(b[:4]) != frameMagic {
		return damaged(fmt.Sprintf("%q", frameMagic), "%q", b[:4])
	}
	if b[4] != frameVersion {
		return frame{}, fmt.Errorf("message %d has format version %d, this program supports %d; run the newer program on this node",
			sequence, b[4], frameVersion)
	}
	f := frame{
		sequence: binary.LittleEndian.Uint64(b[8:]),
		previous: binary.LittleEndian.Uint32(b[16:]),
		proposal: proposalID(b[24:frameHeaderBytes]),
		record:   b[frameHeaderBytes:end],
	}
	if length := binary.LittleEndian.Uint32(b[20:]); int(length) != len(f.record) {
		return damaged(fmt.Sprintf("a record of %d bytes", length), "%d", len(f.record))
	}
	if f.sequence != sequence {
		return damaged(fmt.Sprintf("sequence %d", sequence), "%d", f.sequence)
	}
	return f, nil
}

// checkPrevious returns an error if the frame has another checksum of the previous record than sum. sum is the checksum
// of that record in this node's log.
func (f *frame) checkPrevious(sum uint32) error {
	if f.previous == sum {
		return nil
	}
	return damageError(f.sequence, fmt.Sprintf("previous checksum %08x, as in this node's log", sum),
		"%08x: the histories of this node and of the writer differ", f.previous)
}
