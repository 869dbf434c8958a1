//go:build !nocluster

package cluster

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/tasard/tasard/wal"
)

const (
	frameMagic        = "tsCL"
	frameVersion      = 1
	frameHeaderBytes  = 40
	frameTrailerBytes = 4
	frameBytesMax     = frameHeaderBytes + wal.RecordBytesMax + frameTrailerBytes
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// proposalID is by which a node knows its own message.
type proposalID [16]byte

// frame is one message of the stream.
type frame struct {
	sequence uint64
	previous uint32 // checksum of the record before, 0 before the first
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

// DamageError says that a message of the stream is not what a node had written there.
type DamageError struct {
	Sequence uint64
	Expected string
	Found    string
}

// Error names the place and the way out.
func (e *DamageError) Error() string {
	return fmt.Sprintf("damaged stream: message %d: expected %s, found %s; if the other nodes go on, stop this one, remove its stream "+
		"directory and start it again", e.Sequence, e.Expected, e.Found)
}

// decodeFrame checks a message that stands at a sequence. The record points into b.
func decodeFrame(sequence uint64, b []byte) (frame, error) {
	wrong := func(expected, found string, args ...any) (frame, error) {
		return frame{}, &DamageError{Sequence: sequence, Expected: expected, Found: fmt.Sprintf(found, args...)}
	}
	if len(b) <= frameHeaderBytes+frameTrailerBytes || len(b) > frameBytesMax {
		return wrong("a whole frame", "%d bytes", len(b))
	}
	end := len(b) - frameTrailerBytes
	if stored, sum := binary.LittleEndian.Uint32(b[end:]), checksum(b[:end]); stored != sum {
		return wrong(fmt.Sprintf("checksum %08x", stored), "%08x", sum)
	}
	if string(b[:4]) != frameMagic {
		return wrong(fmt.Sprintf("%q", frameMagic), "%q", b[:4])
	}
	if b[4] != frameVersion {
		return frame{}, fmt.Errorf("message %d has format version %d, this program knows %d; run the newer program on this node", sequence, b[4], frameVersion)
	}
	f := frame{
		sequence: binary.LittleEndian.Uint64(b[8:]),
		previous: binary.LittleEndian.Uint32(b[16:]),
		proposal: proposalID(b[24:frameHeaderBytes]),
		record:   b[frameHeaderBytes:end],
	}
	if length := binary.LittleEndian.Uint32(b[20:]); int(length) != len(f.record) {
		return wrong(fmt.Sprintf("a record of %d bytes", length), "%d", len(f.record))
	}
	if f.sequence != sequence {
		return wrong(fmt.Sprintf("sequence %d", sequence), "%d", f.sequence)
	}
	return f, nil
}

// checkPrevious checks that the message was written behind the record with this checksum.
func (f *frame) checkPrevious(sum uint32) error {
	if f.previous == sum {
		return nil
	}
	return &DamageError{
		Sequence: f.sequence,
		Expected: fmt.Sprintf("one behind a record with checksum %08x, as this node has", sum),
		Found:    fmt.Sprintf("one behind %08x: the histories of this node and of its writer differ", f.previous),
	}
}
