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
	// stalledAfter is how long an offer is undecided that shows that nothing can be made durable, whatever the nodes say of each other: the
	// leader's disk may be full. An election takes less.
	stalledAfter     = 10 * time.Second
	publishTimeout   = 2 * time.Second        // for an answer of the server to one sending
	retryIntervalMin = 20 * time.Millisecond  // pause before the next sending
	retryIntervalMax = 500 * time.Millisecond // and the longest
)

// errClosed is the answer when nobody can learn any more what stands in the stream.
var errClosed = errors.New("the journal of the cluster is closed")

// Journal is the stream as this node sees it, with the copy that it keeps. It is an actors.Shared. Append and Follow each belong to one
// goroutine; Append learns from Follow what stands.
type Journal struct {
	*wal.Log // the copy: Last, Read, Snapshot, DropBefore, Room, Backup, Stats

	cluster          *Cluster
	request          func(context.Context, *nats.Msg) (*nats.Msg, error)
	snapshotSequence atomic.Uint64 // sequence of the newest snapshot
	wake             chan struct{} // Follow should look
	stop             chan error    // why Follow must end

	mu           sync.Mutex // guards what follows
	last         uint64     // sequence of the newest record on this node's disk
	lastChecksum uint32     // its checksum, 0 without one
	pending      *proposal  // what Append waits for
	expected     uint64     // a sequence that may stand in the stream by now
	proposals    uint64     // of offers of this process
	closedBy     error      // why no more can be learned
}

// pending is one record on its way to a place.
type proposal struct {
	sequence   uint64
	id         proposalID
	proposedAt time.Time
	ctx        context.Context // ends when it is known what stands at the place
	cancel     func()
	err        error // nil: this one; set before open ends
}

var _ actors.Shared = (*Journal)(nil)

// newJournal is one behind what the copy has.
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

// Node is actors.Shared.
func (j *Journal) Node() engine.NodeID { return j.cluster.config.Node }

// ClusterHealth is actors.Shared.
func (j *Journal) ClusterHealth() actors.ClusterHealth { return j.cluster.Health() }

// WriteSnapshot is actors.Journal. What every node has in a snapshot leaves the stream.
func (j *Journal) WriteSnapshot(sequence uint64, write func(io.Writer) error) error {
	if err := j.Log.WriteSnapshot(sequence, write); err != nil {
		return err
	}
	j.snapshotSequence.Store(max(j.snapshotSequence.Load(), sequence))
	return nil
}

// Close ends every Append and closes the copy. Follow must have returned. The cluster stays: its Close comes after.
func (j *Journal) Close() error {
	j.closeWith(errClosed)
	return j.Log.Close()
}

// Append is actors.Shared: it offers one record. It also returns an error when Follow has ended.
func (j *Journal) Append(expected uint64, records [][]byte) (uint64, error) {
	if len(records) != 1 {
		return 0, fmt.Errorf("append %d records to the stream: want one", len(records))
	}
	if size := len(records[0]); size == 0 || size > wal.RecordBytesMax {
		return 0, fmt.Errorf("append %d bytes to the stream: %w: want 1 to %d", size, wal.ErrLimit, wal.RecordBytesMax)
	}
	o, message, err := j.propose(expected, records[0])
	if err != nil {
		return 0, err
	}
	j.publish(o, message)
	if o.err != nil {
		return 0, fmt.Errorf("append behind record %d: %w", expected, o.err)
	}
	return o.sequence, nil
}

// propose makes the offer that Follow decides, and its message.
func (j *Journal) propose(expected uint64, record []byte) (*proposal, *nats.Msg, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.closedBy != nil:
		return nil, nil, j.closedBy
	case j.pending != nil:
		return nil, nil, errors.New("append to the stream: another offer is under way")
	case j.last != expected:
		return nil, nil, fmt.Errorf("append behind record %d: %w: it ends with %d or later", expected, actors.ErrPosition, j.last)
	}
	j.proposals++
	o := &proposal{sequence: expected + 1, id: j.cluster.newProposalID(j.proposals), proposedAt: j.cluster.config.Clock()}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	f := frame{sequence: o.sequence, previous: j.lastChecksum, proposal: o.id, record: record}
	j.pending = o
	message := nats.NewMsg(subjectJournal)
	message.Header.Set(jetstream.ExpectedLastSeqHeader, strconv.FormatUint(expected, 10))
	message.Data = f.encode()
	return o, message, nil
}

// publish sends the message until it is known what stands at its place. Sending it often does no harm: at any other place it is refused.
func (j *Journal) publish(o *proposal, message *nats.Msg) {
	again := retryIntervalMin
	for o.ctx.Err() == nil {
		attempt, done := context.WithTimeout(o.ctx, publishTimeout)
		answer, err := j.request(attempt, message)
		done()
		if err == nil {
			// Whatever it says: something is at the place, or on its way there.
			j.expectRecord(o.sequence)
			again = retryIntervalMax
		}
		j.cluster.logger.Debug("offer sent", "place", o.sequence, "answer", messageText(answer), "cause", err)
		if sleep(o.ctx, again) == nil {
			again = min(2*again, retryIntervalMax)
		}
	}
}

func messageText(m *nats.Msg) string {
	if m == nil {
		return ""
	}
	return string(m.Data)
}

// stalled reports whether an offer waits for so long that no new ones should be made. It is sent again all the same.
func (j *Journal) stalled(now time.Time) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.pending != nil && now.Sub(j.pending.proposedAt) > stalledAfter
}

// expectRecord has Follow look for a record that may stand by now.
func (j *Journal) expectRecord(sequence uint64) {
	j.mu.Lock()
	j.expected = max(j.expected, sequence)
	j.mu.Unlock()
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// recordExpected reports whether somebody waits for the record behind the newest.
func (j *Journal) recordExpected() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.expected > j.last
}

// position is the newest record on this node's disk and its checksum.
func (j *Journal) position() (uint64, uint32) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last, j.lastChecksum
}

// committed tells what stands behind the newest record: these frames, which are on disk.
func (j *Journal) committed(frames []frame) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range frames {
		f := &frames[i]
		if o := j.pending; o != nil && o.sequence == f.sequence {
			if o.id != f.proposal {
				o.err = actors.ErrPosition
			}
			j.pending = nil
			o.cancel()
		}
		j.last, j.lastChecksum = f.sequence, checksum(f.record)
	}
}

// closeWith settles what waits, and everything later.
func (j *Journal) closeWith(why error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closedBy == nil {
		j.closedBy = why
	}
	if o := j.pending; o != nil {
		o.err = j.closedBy
		j.pending = nil
		o.cancel()
	}
}

// proposalID is the name of an offer of this process.
func (c *Cluster) newProposalID(serial uint64) proposalID {
	var id proposalID
	copy(id[:], c.processID[:])
	binary.LittleEndian.PutUint64(id[8:], serial)
	return id
}
