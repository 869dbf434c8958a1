package cluster

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/tasard/tasard/wal"
)

const (
	// A record of raft's log (raftDirName) is one of these bytes, its kind, followed by a protobuf message.
	kindEntry    = 'E' // an entry; it replaces the entry with the same index and all entries after that
	kindVote     = 'H' // raft's hard state: term, vote, commit index
	kindSnapshot = 'S' // a snapshot of the leader; it replaces all entries

	checkpointBytes  = 32 << 20
	raftReserveBytes = 16 << 20 // free disk space that must remain after a write of raft
)

// store keeps raft's entries and votes in memory and in a wal. The entries and votes of one raft.Ready are written
// together (see write).
type store struct {
	*raft.MemoryStorage
	log   *wal.Log
	every uint64 // number of entries after which a checkpoint is due
	bytes int    // written since the newest checkpoint
}

// replicated is the state that all nodes derive from the entries. It is the data of raft's snapshots.
type replicated struct {
	Stream   string              `json:"stream"`
	CodeKey  []byte              `json:"codeKey"`  // secret key for hashes of login codes
	Sequence uint64              `json:"sequence"` // of the newest record
	Checksum uint32              `json:"checksum"` // of the newest record; 0 = unknown
	Nodes    map[uint64]nodeName `json:"nodes"`    // by raft ID
	Removed  []uint64            `json:"removed,omitempty"`
}

// nodeName is the data of a raft ConfChange that adds a node.
type nodeName struct {
	Name string `json:"name"`
}

func decodeReplicated(data []byte) (s replicated, err error) {
	if err = json.Unmarshal(data, &s); err == nil && s.Nodes == nil {
		s.Nodes = map[uint64]nodeName{}
	}
	return s, err
}

func openStore(dir string, o wal.Options, every uint64) (*store, error) {
	log, err := wal.Open(filepath.Join(dir, raftDirName), o)
	if err != nil {
		return nil, err
	}
	s := &store{MemoryStorage: raft.NewMemoryStorage(), log: log, every: every}
	if err := s.replay(); err != nil {
		return nil, errors.Join(fmt.Errorf("read raft's log %s: %w", filepath.Join(dir, raftDirName), err), log.Close())
	}
	return s, nil
}

// fresh reports whether the store is empty: the node has neither voted nor confirmed an entry.
func (s *store) fresh() bool {
	hard, _, err := s.InitialState()
	last, lastErr := s.LastIndex()
	return err == nil && lastErr == nil && last == 0 && raft.IsEmptyHardState(hard)
}

func (s *store) replay() error {
	covered, checkpoint, ok, err := s.log.Snapshot()
	if err != nil {
		return err
	}
	if ok {
		b, err := io.ReadAll(checkpoint)
		if err = errors.Join(err, checkpoint.Close()); err == nil {
			err = s.replayCheckpoint(b)
		}
		if err != nil {
			return err
		}
	}
	return s.log.Read(max(s.log.First(), covered+1), func(_ uint64, record []byte) error { return s.replayRecord(bytes.Clone(record)) })
}

// replayCheckpoint replays records, each after its length.
func (s *store) replayCheckpoint(b []byte) error {
	for len(b) > 0 {
		n, size := binary.Uvarint(b)
		if size <= 0 || uint64(len(b)-size) < n { //nolint:gosec // size is at most the length
			return errors.New("the checkpoint is truncated")
		}
		if err := s.replayRecord(b[size : size+int(n)]); err != nil { //nolint:gosec // at most the size of the file
			return err
		}
		b = b[size+int(n):] //nolint:gosec // see above
	}
	s.bytes = 0
	return nil
}

func (s *store) replayRecord(record []byte) error {
	if len(record) == 0 {
		return errors.New("an empty record")
	}
	switch body := record[1:]; record[0] {
	case kindVote:
		h := new(pb.HardState)
		return errors.Join(proto.Unmarshal(body, h), s.SetHardState(h))
	case kindSnapshot:
		snapshot := new(pb.Snapshot)
		return errors.Join(proto.Unmarshal(body, snapshot), s.ApplySnapshot(snapshot))
	case kindEntry:
		e := new(pb.Entry)
		s.bytes += len(record)
		return errors.Join(proto.Unmarshal(body, e), s.Append([]*pb.Entry{e}))
	}
	return fmt.Errorf("a record of kind %q: run the newer program on this directory", record[0])
}

func encodeRecord(kind byte, m proto.Message) []byte { return append([]byte{kind}, mustMarshal(m)...) }

// save makes the entries and votes of rd durable. wal.ErrNoSpace means that nothing was written, and save can be
// called again.
func (s *store) save(rd *raft.Ready) error {
	var records [][]byte
	if !raft.IsEmptySnap(rd.Snapshot) {
		records = append(records, encodeRecord(kindSnapshot, rd.Snapshot))
	}
	for _, e := range rd.Entries {
		records = append(records, encodeRecord(kindEntry, e))
	}
	vote := rd.HardState != nil && !raft.IsEmptyHardState(rd.HardState)
	if vote && (rd.MustSync || len(records) > 0) {
		records = append(records, encodeRecord(kindVote, rd.HardState))
	}
	if err := s.write(records); err != nil {
		return err
	}
	var err error
	if !raft.IsEmptySnap(rd.Snapshot) {
		err = s.ApplySnapshot(rd.Snapshot)
	}
	if vote {
		err = errors.Join(err, s.SetHardState(rd.HardState))
	}
	return errors.Join(err, s.Append(rd.Entries))
}

// write appends records in batches that package wal accepts. A vote is the last record. If a crash cuts the batches,
// raft has entries without the vote that came with them; this node has acknowledged neither.
func (s *store) write(records [][]byte) error {
	for len(records) > 0 {
		n, size := 0, 0
		for n < len(records) && n < wal.BatchRecordsMax && (n == 0 || size+len(records[n])+4 <= wal.BatchBytesMax) {
			size += len(records[n]) + 4
			n++
		}
		if _, err := s.log.Append(records[:n]); err != nil {
			return err
		}
		for _, r := range records[:n] {
			s.bytes += len(r)
		}
		records = records[n:]
	}
	return nil
}

// bootstrap makes this node the only voter of a new cluster.
func (s *store) bootstrap(id uint64, state replicated) error {
	data, err := json.Marshal(state)
	if err != nil {
		return err
	}
	snapshot := &pb.Snapshot{Data: data, Metadata: &pb.SnapshotMetadata{
		Index: proto.Uint64(1), Term: proto.Uint64(1), ConfState: &pb.ConfState{Voters: []uint64{id}},
	}}
	return s.save(&raft.Ready{Snapshot: snapshot, HardState: &pb.HardState{Term: proto.Uint64(1), Commit: proto.Uint64(1)}, MustSync: true})
}

// checkpointDue reports whether the log is long and a snapshot after the entry with index applied would shorten it.
func (s *store) checkpointDue(applied uint64) bool {
	snapshot, err := s.Snapshot()
	index := snapshot.GetMetadata().GetIndex()
	return err == nil && applied > index && (applied-index >= s.every || s.bytes >= checkpointBytes)
}

// checkpoint replaces the entries up to index applied by a snapshot. state is the state after these entries.
func (s *store) checkpoint(applied uint64, conf *pb.ConfState, state replicated) error {
	data, err := json.Marshal(state)
	if err != nil {
		return err
	}
	snapshot, err := s.CreateSnapshot(applied, conf, data)
	if err != nil {
		return err
	}
	hard, _, err := s.InitialState()
	if err != nil {
		return err
	}
	records := [][]byte{encodeRecord(kindSnapshot, snapshot), encodeRecord(kindVote, hard)}
	last, err := s.LastIndex()
	if err != nil {
		return err
	}
	entries, err := s.Entries(applied+1, last+1, ^uint64(0))
	if err != nil && applied < last {
		return err
	}
	for _, e := range entries {
		records = append(records, encodeRecord(kindEntry, e))
	}
	covered := s.log.Last()
	err = s.log.WriteSnapshot(covered, func(w io.Writer) error {
		for _, r := range records {
			if _, err := w.Write(append(binary.AppendUvarint(nil, uint64(len(r))), r...)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.bytes = 0
	if first, err := s.FirstIndex(); err == nil && applied > s.every/2 && applied-s.every/2 >= first {
		if err := s.Compact(applied - s.every/2); err != nil {
			return err
		}
	}
	return s.log.DropBefore(covered + 1)
}

func (s *store) close() error { return s.log.Close() }
