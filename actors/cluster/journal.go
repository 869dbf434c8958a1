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
	// offerLong is how long an offer is undecided that shows that nothing can be made durable, whatever the nodes say of each other: the
	// leader's disk may be full. An election takes less.
	offerLong  = 10 * time.Second
	offerWait  = 2 * time.Second        // for an answer of the server to one sending
	againFirst = 20 * time.Millisecond  // pause before the next sending
	againMost  = 500 * time.Millisecond // and the longest
)

// errEnded is the answer when nobody can learn any more what stands in the stream.
var errEnded = errors.New("the journal of the cluster is closed")

// Journal is the stream as this node sees it, with the copy that it keeps. It is an actors.Shared. Append and Follow each belong to one
// goroutine; Append learns from Follow what stands.
type Journal struct {
	*wal.Log // the copy: Last, Read, Snapshot, DropBefore, Room, Backup, Stats

	cluster *Cluster
	ask     func(context.Context, *nats.Msg) (*nats.Msg, error)
	kept    atomic.Uint64 // sequence of the newest snapshot
	wake    chan struct{} // Follow should look
	stop    chan error    // why Follow must end

	mu     sync.Mutex // guards what follows
	known  uint64     // sequence of the newest record on this node's disk
	sum    uint32     // its checksum, 0 without one
	offer  *offer     // what Append waits for
	wanted uint64     // a sequence that may stand in the stream by now
	serial uint64     // of offers of this process
	ended  error      // why no more can be learned
}

// offer is one record on its way to a place.
type offer struct {
	place   uint64
	id      offerID
	since   time.Time
	open    context.Context // ends when it is known what stands at the place
	decided func()
	err     error // nil: this one; set before open ends
}

var _ actors.Shared = (*Journal)(nil)

// newJournal is one behind what the copy has.
func newJournal(c *Cluster, log *wal.Log) (*Journal, error) {
	j := &Journal{Log: log, cluster: c, ask: c.node.conn.RequestMsgWithContext, wake: make(chan struct{}, 1), stop: make(chan error, 1), known: log.Last()}
	j.kept.Store(log.Recovery().SnapshotSequence)
	if j.known == 0 {
		return j, nil
	}
	err := log.Read(j.known, func(_ uint64, record []byte) error {
		j.sum = checksum(record)
		return nil
	})
	return j, err
}

// Node is actors.Shared.
func (j *Journal) Node() engine.NodeID { return j.cluster.config.Node }

// Standing is actors.Shared.
func (j *Journal) Standing() actors.Standing { return j.cluster.Standing() }

// WriteSnapshot is actors.Journal. What every node has in a snapshot leaves the stream.
func (j *Journal) WriteSnapshot(sequence uint64, write func(io.Writer) error) error {
	if err := j.Log.WriteSnapshot(sequence, write); err != nil {
		return err
	}
	j.kept.Store(max(j.kept.Load(), sequence))
	return nil
}

// Close ends every Append and closes the copy. Follow must have returned. The cluster stays: its Close comes after.
func (j *Journal) Close() error {
	j.end(errEnded)
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
	o, message, err := j.begin(expected, records[0])
	if err != nil {
		return 0, err
	}
	j.send(o, message)
	if o.err != nil {
		return 0, fmt.Errorf("append behind record %d: %w", expected, o.err)
	}
	return o.place, nil
}

// begin makes the offer that Follow decides, and its message.
func (j *Journal) begin(expected uint64, record []byte) (*offer, *nats.Msg, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.ended != nil:
		return nil, nil, j.ended
	case j.offer != nil:
		return nil, nil, errors.New("append to the stream: another offer is under way")
	case j.known != expected:
		return nil, nil, fmt.Errorf("append behind record %d: %w: it ends with %d or later", expected, actors.ErrPosition, j.known)
	}
	j.serial++
	o := &offer{place: expected + 1, id: j.cluster.offerID(j.serial), since: j.cluster.config.Clock()}
	o.open, o.decided = context.WithCancel(context.Background())
	f := frame{sequence: o.place, previous: j.sum, offer: o.id, record: record}
	j.offer = o
	message := nats.NewMsg(subjectJournal)
	message.Header.Set(jetstream.ExpectedLastSeqHeader, strconv.FormatUint(expected, 10))
	message.Data = f.encode()
	return o, message, nil
}

// send sends the message until it is known what stands at its place. Sending it often does no harm: at any other place it is refused.
func (j *Journal) send(o *offer, message *nats.Msg) {
	again := againFirst
	for o.open.Err() == nil {
		attempt, done := context.WithTimeout(o.open, offerWait)
		answer, err := j.ask(attempt, message)
		done()
		if err == nil {
			// Whatever it says: something is at the place, or on its way there.
			j.look(o.place)
			again = againMost
		}
		j.cluster.logger.Debug("offer sent", "place", o.place, "answer", dataOf(answer), "cause", err)
		if pause(o.open, again) == nil {
			again = min(2*again, againMost)
		}
	}
}

func dataOf(m *nats.Msg) string {
	if m == nil {
		return ""
	}
	return string(m.Data)
}

// stuck reports whether an offer waits for so long that no new ones should be made. It is sent again all the same.
func (j *Journal) stuck(now time.Time) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.offer != nil && now.Sub(j.offer.since) > offerLong
}

// look has Follow look for a record that may stand by now.
func (j *Journal) look(sequence uint64) {
	j.mu.Lock()
	j.wanted = max(j.wanted, sequence)
	j.mu.Unlock()
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// awaited reports whether somebody waits for the record behind the newest.
func (j *Journal) awaited() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.wanted > j.known
}

// position is the newest record on this node's disk and its checksum.
func (j *Journal) position() (uint64, uint32) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.known, j.sum
}

// stood tells what stands behind the newest record: these frames, which are on disk.
func (j *Journal) stood(frames []frame) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range frames {
		f := &frames[i]
		if o := j.offer; o != nil && o.place == f.sequence {
			if o.id != f.offer {
				o.err = actors.ErrPosition
			}
			j.offer = nil
			o.decided()
		}
		j.known, j.sum = f.sequence, checksum(f.record)
	}
}

// end settles what waits, and everything later.
func (j *Journal) end(why error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ended == nil {
		j.ended = why
	}
	if o := j.offer; o != nil {
		o.err = j.ended
		j.offer = nil
		o.decided()
	}
}

// offerID is the name of an offer of this process.
func (c *Cluster) offerID(serial uint64) offerID {
	var id offerID
	copy(id[:], c.process[:])
	binary.LittleEndian.PutUint64(id[8:], serial)
	return id
}
