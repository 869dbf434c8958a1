//go:build !nocluster

package cluster

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/wal"
)

const (
	// stalledAfter is longer than an election takes. A proposal that is undecided for so long means that nothing can
	// be made durable, for example because the leader's disk is full.
	stalledAfter     = 10 * time.Second
	publishTimeout   = 2 * time.Second       // for the server's answer to one attempt
	retryIntervalMin = 20 * time.Millisecond // before the second attempt
	retryIntervalMax = 500 * time.Millisecond
)

// errClosed is returned when it can no longer be learned which records are in the stream.
var errClosed = errors.New("the journal of the cluster is closed")

// Journal is the stream as this node sees it, with its local log. It implements actors.Shared. Append and
// Follow each belong to one goroutine; Append learns from Follow which records were committed.
type Journal struct {
	*wal.Log // the local log: Last, Read, Snapshot, DropBefore, Room, Backup, Stats

	cluster          *Cluster
	request          func(context.Context, *nats.Msg) (*nats.Msg, error)
	snapshotSequence atomic.Uint64 // of the newest snapshot
	wake             chan struct{} // tells Follow to look for new records
	stop             chan error    // ends Follow with an error

	mu           sync.Mutex // guards the fields below
	last         uint64     // newest record in the local log
	lastChecksum uint32     // its checksum, 0 without a record
	pending      *proposal  // the proposal that Append waits for
	expected     uint64     // a record that may be in the stream already
	proposals    uint64     // made by this process
	closedBy     error      // why Append fails, nil = open
}

// proposal is one record proposed for a sequence.
type proposal struct {
	sequence   uint64
	id         proposalID
	proposedAt time.Time
	ctx        context.Context // ends when the record at the sequence is known
	cancel     func()
	err        error // nil: it is this one; set before ctx ends
}

var _ actors.Shared = (*Journal)(nil)

// newJournal makes a journal that continues after the last record of the local log.
func newJournal(c *Cluster, log *wal.Log) (*Journal, error) {
	j := &Journal{Log: log, cluster: c, request: c.server.conn.RequestMsgWithContext, wake: make(chan struct{}, 1), stop: make(chan error, 1), last: log.Last()}
	j.snapshotSequence.Store(log.Recovery().SnapshotSequence)
	if j.last == 0 {
		return j, nil
	}
	err := log.Read(j.last, func(_ uint64, record []byte) error {
		j.lastChecksum = checksum(record)
		return nil
	})
	return j, err
}

// Node implements actors.Shared.
func (j *Journal) Node() engine.NodeID { return j.cluster.config.Node }

// ClusterHealth implements actors.Shared.
func (j *Journal) ClusterHealth() actors.ClusterHealth { return j.cluster.Health() }

// WriteSnapshot implements actors.Journal. The stream is trimmed below the oldest snapshot of all nodes.
func (j *Journal) WriteSnapshot(sequence uint64, write func(io.Writer) error) error {
	if err := j.Log.WriteSnapshot(sequence, write); err != nil {
		return err
	}
	j.snapshotSequence.Store(max(j.snapshotSequence.Load(), sequence))
	return nil
}

// Close ends every Append and closes the local log. Follow must have returned. It does not close the Cluster.
func (j *Journal) Close() error {
	j.closeWith(errClosed)
	return j.Log.Close()
}

// Append implements actors.Shared: it proposes one record. It also returns an error when Follow has ended.
func (j *Journal) Append(expected uint64, records [][]byte) (uint64, error) {
	if len(records) != 1 {
		return 0, fmt.Errorf("append %d records to the stream: want one", len(records))
	}
	if size := len(records[0]); size == 0 || size > wal.RecordBytesMax {
		return 0, fmt.Errorf("append %d bytes to the stream: %w: want 1 to %d", size, wal.ErrLimit, wal.RecordBytesMax)
	}
	p, message, err := j.propose(expected, records[0])
	if err != nil {
		return 0, err
	}
	j.publish(p, message)
	if p.err != nil {
		return 0, fmt.Errorf("append after record %d: %w", expected, p.err)
	}
	return p.sequence, nil
}

// propose registers a proposal, which Follow decides, and returns its message.
func (j *Journal) propose(expected uint64, record []byte) (*proposal, *nats.Msg, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.closedBy != nil:
		return nil, nil, j.closedBy
	case j.pending != nil:
		return nil, nil, errors.New("append to the stream: another append is in progress")
	case j.last != expected:
		return nil, nil, fmt.Errorf("append after record %d: %w: the stream ends with %d or later", expected, actors.ErrPosition, j.last)
	}
	j.proposals++
	p := &proposal{sequence: expected + 1, id: j.cluster.newProposalID(j.proposals), proposedAt: j.cluster.config.Clock()}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	f := frame{sequence: p.sequence, previous: j.lastChecksum, proposal: p.id, record: record}
	j.pending = p
	message := nats.NewMsg(subjectJournal)
	message.Header.Set(jetstream.ExpectedLastSeqHeader, strconv.FormatUint(expected, 10))
	message.Data = f.encode()
	return p, message, nil
}

// publish sends the message until the record at its sequence is known. Repeating it is harmless, because the server
// rejects a message at any other sequence.
func (j *Journal) publish(p *proposal, message *nats.Msg) {
	retry := retryIntervalMin
	for p.ctx.Err() == nil {
		attempt, done := context.WithTimeout(p.ctx, publishTimeout)
		_, err := j.request(attempt, message)
		done()
		if err == nil { // accepted or rejected: a record is at the sequence, or will be soon
			j.expectRecord(p.sequence)
			retry = retryIntervalMax
		}
		j.cluster.logger.Debug("record proposed", "sequence", p.sequence, "cause", err)
		if sleep(p.ctx, retry) == nil {
			retry = min(2*retry, retryIntervalMax)
		}
	}
}

// stalled reports whether a proposal has been undecided for so long that new changes should be rejected. The proposal
// is still retried.
func (j *Journal) stalled(now time.Time) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.pending != nil && now.Sub(j.pending.proposedAt) > stalledAfter
}

// expectRecord tells Follow that a record may be in the stream already.
func (j *Journal) expectRecord(sequence uint64) {
	j.mu.Lock()
	j.expected = max(j.expected, sequence)
	j.mu.Unlock()
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// recordExpected reports whether the record after the last one may be in the stream already.
func (j *Journal) recordExpected() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.expected > j.last
}

// position returns the newest record in the local log and its checksum.
func (j *Journal) position() (uint64, uint32) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last, j.lastChecksum
}

// committed reports frames that are in the stream and in the local log, and decides the pending proposal.
func (j *Journal) committed(frames []frame) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range frames {
		f := &frames[i]
		if p := j.pending; p != nil && p.sequence == f.sequence {
			if p.id != f.proposal {
				p.err = actors.ErrPosition
			}
			j.pending = nil
			p.cancel()
		}
		j.last, j.lastChecksum = f.sequence, checksum(f.record)
	}
}

// closeWith fails the pending proposal and all later ones.
func (j *Journal) closeWith(why error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closedBy == nil {
		j.closedBy = why
	}
	if p := j.pending; p != nil {
		p.err = j.closedBy
		j.pending = nil
		p.cancel()
	}
}

func (c *Cluster) newProposalID(serial uint64) proposalID {
	var id proposalID
	copy(id[:], c.processID[:])
	binary.LittleEndian.PutUint64(id[8:], serial)
	return id
}
