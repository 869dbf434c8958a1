package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/wal"
)

const (
	// stalledAfter must be longer than the election of a leader takes. If a proposal (a record that this node wants
	// to append) is pending for longer than stalledAfter, the cluster cannot commit records, for example because the
	// leader's disk is full.
	stalledAfter    = 10 * time.Second
	proposeInterval = 250 * time.Millisecond // time between attempts while the leader is the same
	retryInterval   = 10 * time.Millisecond  // time between attempts without a leader, because an election may end at any moment
	// recordBytesMax leaves room in a record of package wal for the frame and raft's entry around it.
	recordBytesMax = wal.RecordBytesMax - 8<<10
)

// errClosed is the error of Append after Journal.Close, and after Follow has returned.
var errClosed = errors.New("the journal of the cluster is closed")

// Journal combines the stream (the log that the nodes share, whose entries raft replicates) and the local log (this
// node's own copy of its records). It implements actors.Shared. Only one goroutine at a time may call Append, and only
// one may call Follow. Append works only while Follow runs, because Follow reports which record was committed.
type Journal struct {
	*wal.Log // the local log; its methods, such as Last and Read, are methods of Journal too

	cluster          *Cluster
	send             func(body []byte) bool    // proposes a frame once; false = there is no leader
	snapshotSequence atomic.Uint64             // sequence of the newest snapshot
	stop             chan error                // makes Follow return the error
	diskFull         atomic.Bool               // the local log waits for space on the disk
	diskSince        atomic.Pointer[time.Time] // when the append to the local log began that is in progress, or nil

	mu           sync.Mutex // guards the fields below
	last         uint64     // sequence of the newest record in the local log
	lastChecksum uint32     // checksum of the newest record; 0 = the log is empty
	pending      *proposal  // the proposal that Append waits for, or nil
	closeErr     error      // if not nil, the error of all calls of Append
}

// proposal is a record that this node proposed for a sequence.
type proposal struct {
	sequence   uint64
	record     []byte // unlike any other: it is a bundle, with a token
	proposedAt time.Time
	ctx        context.Context // canceled when Follow knows which record has the sequence
	cancel     func()
	err        error // result; nil = the proposed record has the sequence; set before ctx is canceled
}

func newJournal(c *Cluster, log *wal.Log) (*Journal, error) {
	j := &Journal{Log: log, cluster: c, send: c.replica.Load().propose, stop: make(chan error, 1), last: log.Last()}
	j.snapshotSequence.Store(log.Recovery().SnapshotSequence)
	sum, err := lastChecksum(log)
	j.lastChecksum = sum
	return j, err
}

// lastChecksum returns the checksum of the newest record of a log, or 0 if the log has no record, also one that
// begins with the snapshot of a restored backup.
func lastChecksum(log *wal.Log) (sum uint32, err error) {
	if log.First() > log.Last() {
		return 0, nil
	}
	err = log.Read(log.Last(), func(_ uint64, record []byte) error {
		sum = checksum(record)
		return nil
	})
	return sum, err
}

// WriteSnapshot implements actors.Journal.
func (j *Journal) WriteSnapshot(sequence uint64, write func(io.Writer) error) error {
	if err := j.Log.WriteSnapshot(sequence, write); err != nil {
		return err
	}
	j.snapshotSequence.Store(max(j.snapshotSequence.Load(), sequence))
	return nil
}

// Close closes the local log. An Append that still waits returns an error. Close does not close the Cluster. Call it
// only when Follow has returned.
func (j *Journal) Close() error {
	j.closeWith(errClosed)
	return j.Log.Close()
}

// Append implements actors.Shared. It accepts exactly one record. If Follow returns while Append waits, Append returns
// an error.
func (j *Journal) Append(expected uint64, records [][]byte) (uint64, error) {
	if len(records) != 1 {
		return 0, fmt.Errorf("append %d records to the stream: want one", len(records))
	}
	if size := len(records[0]); size == 0 || size > recordBytesMax {
		return 0, fmt.Errorf("append %d bytes to the stream: %w: want 1 to %d", size, wal.ErrLimit, recordBytesMax)
	}
	// A node that has no space for its own record must not propose it: it would not learn that it is committed.
	if err := j.CheckSpace(int64(len(records[0]))); err != nil {
		return 0, fmt.Errorf("append to the stream: %w", err)
	}
	p, body, err := j.propose(expected, records[0])
	if err != nil {
		return 0, err
	}
	j.publish(p, body)
	if p.err != nil {
		return 0, fmt.Errorf("append after record %d: %w", expected, p.err)
	}
	return p.sequence, nil
}

// propose makes a proposal, stores it in pending, and returns it with the frame to propose.
func (j *Journal) propose(expected uint64, record []byte) (*proposal, []byte, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.closeErr != nil:
		return nil, nil, j.closeErr
	case j.pending != nil:
		return nil, nil, errors.New("append to the stream: another append is in progress")
	case j.last != expected:
		return nil, nil, fmt.Errorf("append after record %d: %w: the stream ends with %d or later", expected, actors.ErrPosition, j.last)
	}
	p := &proposal{sequence: expected + 1, record: record, proposedAt: j.cluster.config.Clock()}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	f := frame{sequence: p.sequence, previous: j.lastChecksum, record: record}
	j.pending = p
	return p, f.encode(), nil
}

// publish proposes the frame again and again until Follow knows which record has the sequence of the proposal. The
// nodes apply only the first entry with a sequence, so they do not apply the proposal twice.
func (j *Journal) publish(p *proposal, body []byte) {
	r := j.cluster.replica.Load()
	for p.ctx.Err() == nil {
		leader := r.leader.Load()
		if !j.send(body) {
			_ = sleep(p.ctx, retryInterval)
			continue
		}
		for waited := time.Duration(0); waited < proposeInterval && r.leader.Load() == leader && p.ctx.Err() == nil; waited += retryInterval {
			_ = sleep(p.ctx, retryInterval) // the loop checks p.ctx
		}
	}
}

// stalled reports whether a proposal has been pending for longer than stalledAfter although this node's disk has
// space. The node should then reject new changes. Append still waits.
func (j *Journal) stalled(now time.Time) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.pending != nil && !j.diskFull.Load() && now.Sub(j.pending.proposedAt) > stalledAfter
}

func (j *Journal) position() (uint64, uint32) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last, j.lastChecksum
}

// committed is called with frames that are now in the stream and in the local log. If one of them has the sequence of
// the pending proposal, Append returns: nil if the frame is the proposal, else ErrPosition.
func (j *Journal) committed(frames []frame) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range frames {
		f := &frames[i]
		if p := j.pending; p != nil && p.sequence == f.sequence {
			if !bytes.Equal(p.record, f.record) {
				p.err = actors.ErrPosition
			}
			j.pending = nil
			p.cancel()
		}
		j.last, j.lastChecksum = f.sequence, checksum(f.record)
		j.cluster.last.Store(f.sequence)
	}
}

// closeWith makes a running Append and all later calls of Append return err.
func (j *Journal) closeWith(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closeErr == nil {
		j.closeErr = err
	}
	if p := j.pending; p != nil {
		p.err = j.closeErr
		j.pending = nil
		p.cancel()
	}
}
