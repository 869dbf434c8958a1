package cluster

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"
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

// errClosed is the error of Append after Journal.Close, and after Follow has returned.
var errClosed = errors.New("the journal of the cluster is closed")

// Journal combines the stream (the log that the nodes share) and the local log (this node's own copy of its records).
// It implements actors.Shared. Only one goroutine at a time may call Append, and only one may call Follow. Append works
// only while Follow runs, because Follow finds out which record was committed.
type Journal struct {
	*wal.Log // the local log; its methods, such as Last and Read, are methods of Journal too

	cluster   *Cluster
	taken     uint64                    // index of the newest entry of raft that Follow has read
	diskFull  atomic.Bool               // the local log waits for space on the disk
	diskSince atomic.Pointer[time.Time] // start of the append to the local log in progress, or nil

	mu           sync.Mutex // guards the fields below
	last         uint64     // sequence of the newest record in the local log
	lastChecksum uint32     // checksum of the newest record; 0 = unknown, because the log began with a backup
	pending      *proposal  // the proposal that Append waits for, or nil
	closeErr     error      // if not nil, the error of all calls of Append
}

// proposal is a record that this node, the leader, wants to append.
type proposal struct {
	sequence uint64
	record   []byte        // unlike any other: it is a bundle, with a token
	done     chan struct{} // closed when the outcome is known
	err      error         // the outcome; set before done is closed
}

func newJournal(c *Cluster, log *wal.Log) (*Journal, error) {
	j := &Journal{Log: log, cluster: c, last: log.Last()}
	if log.First() > log.Last() { // the log is only the state of a backup
		if base := c.replica.base.Load(); base.Sequence == j.last {
			j.lastChecksum = base.Checksum
		}
		return j, nil
	}
	return j, log.Read(j.last, func(_ uint64, record []byte) error {
		j.lastChecksum = checksum(record)
		return nil
	})
}

// Close closes the local log. An Append that still waits returns an error. Close does not close the Cluster. Call it
// only when Follow has returned.
func (j *Journal) Close() error {
	j.closeWith(errClosed)
	return j.Log.Close()
}

// Append implements actors.Shared. It accepts exactly one record, and proposes it once. If Follow returns while Append
// waits, Append returns an error.
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
	p, body, err := j.begin(records[0])
	if err != nil {
		return 0, err
	}
	if !j.cluster.replica.propose(term, body) {
		j.end(actors.ErrNotLeader)
		return 0, actors.ErrNotLeader
	}
	<-p.done
	if p.err != nil {
		return 0, fmt.Errorf("append record %d: %w", p.sequence, p.err)
	}
	return p.sequence, nil
}

// begin makes a proposal, stores it in pending, and returns it with the frame to propose.
func (j *Journal) begin(record []byte) (*proposal, []byte, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.closeErr != nil:
		return nil, nil, j.closeErr
	case j.pending != nil:
		return nil, nil, errors.New("append to the stream: another append is in progress")
	}
	j.pending = &proposal{sequence: j.last + 1, record: record, done: make(chan struct{})}
	f := frame{sequence: j.pending.sequence, previous: j.lastChecksum, record: record}
	return j.pending, f.encode(), nil
}

// end sets the outcome of the pending proposal, if there is one.
func (j *Journal) end(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.endPending(err)
}

// endPending is called with mu locked.
func (j *Journal) endPending(err error) {
	if j.pending != nil {
		j.pending.err = err
		close(j.pending.done)
		j.pending = nil
	}
}

// proposing reports whether a proposal has no outcome yet.
func (j *Journal) proposing() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.pending != nil
}

// Leadership implements actors.Shared.
func (j *Journal) Leadership() (term, after uint64) {
	r := j.cluster.replica
	if l := r.leadership.Load(); l != nil && r.c.config.Clock().UnixNano() > r.transferUntil.Load() {
		return l.term, l.after
	}
	return 0, 0
}

func (j *Journal) position() (uint64, uint32) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last, j.lastChecksum
}

// committed is called with frames that are now in the stream and in the local log. If one of them has the sequence of
// the pending proposal, Append returns.
func (j *Journal) committed(frames []frame) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range frames {
		f := &frames[i]
		if p := j.pending; p != nil && p.sequence == f.sequence {
			var err error
			if !bytes.Equal(p.record, f.record) { // another node leads
				err = actors.ErrOutcomeUnknown
			}
			j.endPending(err)
		}
		j.last, j.lastChecksum = f.sequence, checksum(f.record)
		j.cluster.last.Store(f.sequence)
	}
}

// closeWith makes a running Append and all later calls of Append return err.
func (j *Journal) closeWith(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closeErr = cmp.Or(j.closeErr, err)
	j.endPending(j.closeErr)
}

const (
	framesMax          = 256 // maximum number of records in one batch of the local log
	spaceRetryInterval = 500 * time.Millisecond
)

// Follow implements actors.Shared: it copies the committed records to the local log, and then passes them to deliver.
func (j *Journal) Follow(ctx context.Context, deliver func(sequence uint64, record []byte)) (err error) {
	defer func() {
		if ctx.Err() != nil {
			err = nil
		}
		j.closeWith(errors.Join(errClosed, err))
	}()
	for {
		frames, err := j.next(ctx)
		if err == nil {
			err = j.persist(ctx, frames)
		}
		if err != nil {
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
	batch := frameBatch{}
	batch.last, batch.checksum = j.position()
	for {
		entries, err := r.committed(j.taken)
		for _, e := range entries {
			j.taken = e.GetIndex()
			if f, ok := decodeFrame(e); ok && err == nil {
				err = batch.add(f)
			}
		}
		switch {
		case err != nil || len(batch.frames) > 0:
			return batch.frames, err
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
			j.committed(frames)
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
