//go:build !nocluster

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tasard/tasard/wal"
)

const (
	tailBuffer         = 64               // number of messages; fetch reads later the messages that do not fit
	idlePollInterval   = time.Second      // between fetches while there are no new records
	pollIntervalMin    = time.Millisecond // between fetches while recordAvailable returns true; doubled each time
	pollIntervalMax    = 50 * time.Millisecond
	fetchRecordsMax    = 256
	fetchBytesMax      = 2 << 20
	fetchTimeoutMin    = 100 * time.Millisecond // maximum wait for the next message of a fetch; doubled after each fetch without
	fetchTimeoutMax    = 2 * time.Second        // an answer, because the replica that was asked may be gone or only slow
	spaceRetryInterval = 500 * time.Millisecond
)

// Follow implements actors.Shared: it copies the records of the stream (the JetStream stream, which is the log that the
// nodes share) to the local log (this node's own copy), and passes them to deliver.
//
// The leader of the stream publishes each committed record to all nodes. These messages, the tail, may get lost. Follow
// fetches a record that is missing in the tail from a replica of the stream.
func (j *Journal) Follow(ctx context.Context, deliver func(sequence uint64, record []byte)) (err error) {
	defer func() {
		if ctx.Err() != nil {
			err = nil
		}
		j.closeWith(errors.Join(errClosed, err))
	}()
	f := &follower{journal: j, conn: j.cluster.server.conn, tail: make(chan *nats.Msg, tailBuffer), moreInStream: true, timeout: fetchTimeoutMin}
	subscription, err := f.conn.ChanSubscribe(subjectTail, f.tail)
	if err != nil {
		return fmt.Errorf("follow the stream: %w", err)
	}
	defer func() { err = errors.Join(err, unsubscribe(subscription)) }()
	last, sum := j.position()
	if err := j.cluster.verifyLog(ctx, last, sum); err != nil {
		return fmt.Errorf("follow the stream: %w", err)
	}
	for {
		frames, err := f.next(ctx)
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

// unsubscribe ends a subscription. It returns nil if the connection is closed.
func unsubscribe(s *nats.Subscription) error {
	err := s.Unsubscribe()
	if errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrBadSubscription) {
		return nil
	}
	return err
}

// persist appends the records of frames (a frame is a record with its checksums) to the local log, as one batch. It
// waits while the disk is full. ClusterHealth shows this wait.
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

// follower reads the records that the local log lacks, in order.
type follower struct {
	journal      *Journal
	conn         *nats.Conn
	tail         chan *nats.Msg
	batch        frameBatch
	moreInStream bool // the stream has more records than the newest fetch has read
	timeout      time.Duration
}

// frameBatch has frames whose sequences are consecutive.
type frameBatch struct {
	last     uint64 // sequence of the newest frame or, without frames, of the newest record in the local log
	checksum uint32 // checksum of that record
	frames   []frame
	bytes    int
}

func (b *frameBatch) full() bool {
	return len(b.frames) >= fetchRecordsMax || b.bytes+frameBytesMax > wal.BatchBytesMax
}

// add appends the frame in a message. It ignores a message that the batch or the local log already has. It returns gap
// and does not append the frame if an earlier message is missing.
func (b *frameBatch) add(sequence uint64, body []byte) (gap bool, err error) {
	if sequence <= b.last {
		return false, nil
	}
	if sequence > b.last+1 {
		return true, nil
	}
	f, err := decodeFrame(sequence, body)
	if err == nil {
		err = f.checkPrevious(b.checksum)
	}
	if err != nil {
		return false, err
	}
	b.last, b.checksum = sequence, checksum(f.record)
	b.frames, b.bytes = append(b.frames, f), b.bytes+len(body)
	return false, nil
}

// next waits until it has the next frames, at least one.
func (f *follower) next(ctx context.Context) ([]frame, error) {
	f.batch = frameBatch{}
	f.batch.last, f.batch.checksum = f.journal.position()
	backoff := pollIntervalMin
	timer := time.NewTimer(idlePollInterval)
	defer timer.Stop()
	for {
		gap, err := f.moreInStream, error(nil)
		if !gap {
			gap, err = f.drain()
		}
		if err == nil && gap {
			err = f.fetch(ctx)
		}
		if err != nil || len(f.batch.frames) > 0 {
			return f.batch.frames, err
		}
		interval := idlePollInterval
		if f.journal.recordAvailable() {
			interval, backoff = backoff, min(2*backoff, pollIntervalMax)
		}
		timer.Reset(interval)
		select {
		case m := <-f.tail:
			gap, err = f.receive(m)
		case <-f.journal.wake:
			continue // drain first, because the tail usually has the record
		case <-timer.C:
			gap = true
		case err = <-f.journal.stop:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if err == nil && gap {
			err = f.fetch(ctx)
		}
		if err != nil {
			return nil, err
		}
	}
}

// drain adds the messages of the tail that have already arrived.
func (f *follower) drain() (gap bool, err error) {
	for !gap && err == nil && !f.batch.full() {
		select {
		case m := <-f.tail:
			gap, err = f.receive(m)
		default:
			return false, nil
		}
	}
	return gap, err
}

func (f *follower) receive(m *nats.Msg) (gap bool, err error) {
	sequence, err := sequenceOf(m)
	if err != nil {
		return false, err
	}
	return f.batch.add(sequence, m.Data)
}

func sequenceOf(m *nats.Msg) (uint64, error) {
	sequence, err := strconv.ParseUint(m.Header.Get(headerSequence), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read the sequence of a message of the stream: %w", err)
	}
	return sequence, nil
}

// fetch requests the records after those of the batch from the nearest replica of the stream, and adds them to the
// batch. If there are no such records, or if no replica replies, it adds nothing and returns nil.
func (f *follower) fetch(ctx context.Context) error {
	f.moreInStream = false
	inbox := f.conn.NewRespInbox()
	replies, err := f.conn.SubscribeSync(inbox)
	if err != nil {
		return err
	}
	defer func() { _ = unsubscribe(replies) }()
	request, err := json.Marshal(struct {
		From  uint64 `json:"seq"`
		Batch int    `json:"batch"`
		Bytes int    `json:"max_bytes"`
	}{f.batch.last + 1, fetchRecordsMax, fetchBytesMax})
	if err == nil {
		err = f.conn.PublishRequest(subjectFetch, inbox, request)
	}
	for err == nil && !f.batch.full() {
		fetchCtx, cancel := context.WithTimeout(ctx, f.timeout)
		var m *nats.Msg
		m, err = replies.NextMsgWithContext(fetchCtx)
		cancel()
		if err != nil {
			f.timeout = min(2*f.timeout, fetchTimeoutMax)
			return ignoreNoAnswer(ctx, err)
		}
		f.timeout = fetchTimeoutMin
		if m.Header.Get(headerStatus) != "" { // the final message of the reply
			pending := m.Header.Get(headerPending)
			f.moreInStream = pending != "" && pending != "0"
			return nil
		}
		err = f.addFetched(m)
	}
	f.moreInStream = true
	return err
}

func (f *follower) addFetched(m *nats.Msg) error {
	sequence, err := sequenceOf(m)
	if err != nil {
		return err
	}
	gap, err := f.batch.add(sequence, m.Data)
	if gap {
		return fmt.Errorf("the stream has record %d, not %d, which this node needs: restart the node, so that it copies another "+
			"node's log; if that does not help, stop it, remove its stream directory and start it", sequence, f.batch.last+1)
	}
	return err
}

// ignoreNoAnswer returns nil if err means that there was no reply to a request.
func ignoreNoAnswer(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrNoResponders) {
		return nil
	}
	return err
}
