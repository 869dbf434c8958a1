package cluster

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/wal"
)

const (
	// recordBytesMax leaves room in a record of package wal for the frame and raft's entry around it.
	recordBytesMax = wal.RecordBytesMax - 8<<10
)

// Journal combines the stream (the log that the nodes share) and the local log (this node's own copy of its records).
// It implements actors.Shared. Only one goroutine at a time may call Append, and only one may call Follow.
type Journal struct {
	*wal.Log // the local log; its methods, such as Last and Read, are methods of Journal too

	cluster   *Cluster
	diskFull  atomic.Bool               // the local log waits for space on the disk
	diskSince atomic.Pointer[time.Time] // start of the append to the local log in progress, or nil

	// Only Follow uses these.
	taken uint64 // index of the newest entry of raft that Follow has read
	batch frameBatch
}

func newJournal(c *Cluster, log *wal.Log) (*Journal, error) {
	j := &Journal{Log: log, cluster: c, batch: frameBatch{last: log.Last()}}
	if log.First() > log.Last() { // the log is only the state of a backup
		if base := c.replica.base.Load(); base.Sequence == j.batch.last {
			j.batch.checksum = base.Checksum
		}
		return j, nil
	}
	return j, log.Read(j.batch.last, func(_ uint64, record []byte) error {
		j.batch.checksum = checksum(record)
		return nil
	})
}

// Append implements actors.Shared. It proposes exactly one record, once.
func (j *Journal) Append(term uint64, records [][]byte) (uint64, error) {
	if len(records) != 1 {
		return 0, fmt.Errorf("append %d records to the stream: want one", len(records))
	}
	if size := len(records[0]); size == 0 || size > recordBytesMax {
		return 0, fmt.Errorf("append %d bytes to the stream: %w: want 1 to %d", size, wal.ErrLimit, recordBytesMax)
	}
	// A node without space for its own record must not propose it: it could not copy the committed record to the local
	// log.
	if err := j.CheckSpace(int64(len(records[0]))); err != nil {
		return 0, fmt.Errorf("append to the stream: %w", err)
	}
	if !j.cluster.replica.propose(term, records[0]) {
		return 0, actors.ErrNotLeader
	}
	return 0, nil
}

// Leadership implements actors.Shared.
func (j *Journal) Leadership() (term, after uint64) {
	r := j.cluster.replica
	if l := r.leadership.Load(); l != nil && r.c.config.Clock().UnixNano() > r.transferUntil.Load() {
		return l.term, l.after
	}
	return 0, 0
}

const (
	framesMax          = 256 // maximum number of records in one batch of the local log
	spaceRetryInterval = 500 * time.Millisecond
)

// Follow implements actors.Shared: it copies the committed records to the local log, and then passes them to deliver.
func (j *Journal) Follow(ctx context.Context, deliver func(sequence uint64, record []byte), lost func(term uint64)) error {
	j.cluster.lost.Store(&lost)
	for {
		frames, err := j.next(ctx)
		if err == nil {
			err = j.persist(ctx, frames)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("follow the stream: %w", err)
		}
		for i := range frames {
			deliver(frames[i].sequence, frames[i].record)
		}
	}
}

// next waits for the next frames and returns at least one.
func (j *Journal) next(ctx context.Context) ([]frame, error) {
	r := j.cluster.replica
	j.batch.frames = nil
	for {
		entries, err := r.committed(j.taken)
		for _, e := range entries {
			j.taken = e.GetIndex()
			if f, ok := decodeFrame(e); ok && err == nil {
				err = j.batch.add(f)
			}
		}
		switch {
		case err != nil || len(j.batch.frames) > 0:
			return j.batch.frames, err
		case len(entries) > 0:
			continue
		}
		select {
		case <-r.wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// committed returns the committed entries after an index that raft still has, up to the limits of one batch of the
// local log. Raft drops an entry only when the local log has its record.
func (r *replica) committed(after uint64) ([]*pb.Entry, error) {
	r.mu.Lock()
	stopped, behind := r.err, r.tooFarBehind() || r.lacksState()
	r.mu.Unlock()
	if behind {
		return nil, fmt.Errorf("this node needs records that the cluster no longer has in its log: restart the node, so that it copies another " +
			"node's state")
	}
	first, err := r.store.FirstIndex()
	from, to := max(first, after+1), r.applied.Load()+1
	if err != nil || from >= to {
		return nil, cmp.Or(err, stopped)
	}
	entries, err := r.store.Entries(from, min(to, from+framesMax), wal.BatchBytesMax-framesMax*4)
	if errors.Is(err, raft.ErrCompacted) { // between the two calls
		return nil, nil
	}
	return entries, err
}

// persist appends the records of frames to the local log, as one batch. It waits while the disk is full.
func (j *Journal) persist(ctx context.Context, frames []frame) error {
	records := make([][]byte, len(frames))
	for i := range frames {
		records[i] = frames[i].record
	}
	for {
		began := j.cluster.config.Clock()
		j.diskSince.Store(&began)
		_, err := j.Log.Append(records)
		j.diskSince.Store(nil)
		full := errors.Is(err, wal.ErrNoSpace)
		j.diskFull.Store(full)
		if err == nil {
			j.cluster.last.Store(frames[len(frames)-1].sequence)
			return nil
		}
		if !full {
			return err
		}
		if err := sleep(ctx, spaceRetryInterval); err != nil {
			return err
		}
	}
}

// sleep waits for d. If ctx ends first, it returns the error of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

const frameHeaderBytes = 12

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// frame is a record of the stream (the log that the nodes share) with its sequence. Package wal and TLS detect damage;
// the field previous reveals that two nodes have different histories. doc.go shows the format.
type frame struct {
	sequence uint64
	previous uint32 // checksum of the previous record; 0 = unknown, or there is none
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

// decodeFrame decodes the data of a valid entry. ok is false if it is not a frame. The record in the result shares its
// memory with the entry.
func decodeFrame(e *pb.Entry) (f frame, ok bool) {
	if e.GetType() != pb.EntryNormal || len(e.Data) == 0 {
		return f, false
	}
	b := e.Data
	return frame{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint32(b[8:]), b[frameHeaderBytes:]}, true
}

// frameBatch collects frames with consecutive sequences.
type frameBatch struct {
	last     uint64 // sequence of the newest frame or, without frames, of the newest record in the local log
	checksum uint32 // checksum of that record
	frames   []frame
}

// add appends a frame. It ignores a frame whose record is already in the local log.
func (b *frameBatch) add(f frame) error {
	previous, sum := f.previous, checksum(f.record)
	switch {
	case f.sequence < b.last:
		return nil
	case f.sequence > b.last+1:
		return fmt.Errorf("record %d follows record %d: %w", f.sequence, b.last, ErrDiverged)
	case f.sequence == b.last:
		previous = sum
	}
	if previous != b.checksum && previous != 0 && b.checksum != 0 { // 0 = unknown
		return fmt.Errorf("record %d: %w: keep a copy of the directory and start this node with an empty one", f.sequence, ErrDiverged)
	}
	if f.sequence > b.last {
		b.frames = append(b.frames, f)
	}
	b.last, b.checksum = f.sequence, sum
	return nil
}
