package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	pb "go.etcd.io/raft/v3/raftpb"
)

const frameHeaderBytes = 12

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// frame is a record of the stream (the log that the nodes share) with its sequence. Package wal and TLS detect damage;
// the field previous reveals that two nodes have different histories. doc.go shows the format.
type frame struct {
	sequence uint64
	previous uint32 // checksum of the previous record; 0 in the first frame
	record   []byte
}

// encode returns the data of an entry of raft.
func (f *frame) encode() []byte {
	b := make([]byte, 0, frameHeaderBytes+len(f.record))
	b = binary.LittleEndian.AppendUint64(b, f.sequence)
	b = binary.LittleEndian.AppendUint32(b, f.previous)
	return append(b, f.record...)
}

var errFrame = errors.New("an entry that is neither empty nor a record")

// validEntry reports whether an entry is a change of the members, the empty first entry of a leader, or a frame.
func validEntry(e *pb.Entry) bool {
	return e.GetType() != pb.EntryNormal || len(e.Data) == 0 || len(e.Data) > frameHeaderBytes
}

// decodeFrame decodes the data of an entry, which is longer than a header. The record in the result shares its memory
// with b.
func decodeFrame(b []byte) frame {
	return frame{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint32(b[8:]), b[frameHeaderBytes:]}
}

// frameBatch collects frames with consecutive sequences.
type frameBatch struct {
	last     uint64 // sequence of the newest frame or, without frames, of the newest record in the local log
	checksum uint32 // checksum of that record
	frames   []frame
}

// add appends a frame. It ignores a frame whose record is already in the local log.
func (b *frameBatch) add(f frame) error {
	previous, want := f.previous, b.checksum
	switch {
	case f.sequence < b.last:
		return nil
	case f.sequence > b.last+1:
		return fmt.Errorf("record %d follows record %d: %w", f.sequence, b.last, ErrDiverged)
	case f.sequence == b.last && want == 0: // the log begins with the snapshot of a backup
		return nil
	case f.sequence == b.last:
		previous = checksum(f.record)
	}
	if previous != want {
		return fmt.Errorf("record %d: %w: keep a copy of the directory and start this node with an empty one", f.sequence, ErrDiverged)
	}
	if f.sequence > b.last {
		b.last, b.checksum = f.sequence, checksum(f.record)
		b.frames = append(b.frames, f)
	}
	return nil
}
