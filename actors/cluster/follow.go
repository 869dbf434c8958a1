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
	tailBuffer         = 64                    // messages that wait; one more is fetched later
	idlePollInterval   = time.Second           // between two looks when no message comes
	pollIntervalMin    = time.Millisecond      // between two looks for a record that is wanted
	pollIntervalMax    = 50 * time.Millisecond // and the longest
	fetchRecordsMax    = 256
	fetchBytesMax      = 2 << 20
	fetchTimeout       = 2 * time.Second // for the next message of those that were asked for
	spaceRetryInterval = 500 * time.Millisecond
)

// Follow is actors.Shared.
//
// The leader sends each record to all nodes when it is committed (the tail). That may lose messages and never invents one: where there is
// a gap, and where no message comes although one should, records are fetched from the nearest copy of the stream.
func (j *Journal) Follow(ctx context.Context, deliver func(sequence uint64, record []byte)) (err error) {
	defer func() {
		if ctx.Err() != nil {
			err = nil
		}
		j.closeWith(errors.Join(errClosed, err))
	}()
	f := &follower{journal: j, conn: j.cluster.server.conn, tail: make(chan *nats.Msg, tailBuffer), moreInStream: true}
	subscription, err := f.conn.ChanSubscribe(subjectTail, f.tail)
	if err != nil {
		return fmt.Errorf("follow the stream: %w", err)
	}
	defer func() { err = errors.Join(err, unsubscribe(subscription)) }()
	if err := j.cluster.verifyStream(ctx); err != nil {
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

// unsubscribe ends a subscription; when the connection is gone it has ended.
func unsubscribe(s *nats.Subscription) error {
	err := s.Unsubscribe()
	if errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrBadSubscription) {
		return nil
	}
	return err
}

// persist brings frames to this node's disk as one batch; while there is no space it waits.
func (j *Journal) persist(ctx context.Context, frames []frame) error {
	records := make([][]byte, len(frames))
	for i := range frames {
		records[i] = frames[i].record
	}
	for {
		_, err := j.Log.Append(records)
		if err == nil {
			j.committed(frames)
			return nil
		}
		if !errors.Is(err, wal.ErrNoSpace) {
			return err
		}
		j.cluster.logger.Warn("this node falls behind: no space for what others write", "next", frames[0].sequence)
		if err := sleep(ctx, spaceRetryInterval); err != nil {
			return err
		}
	}
}

// sleep waits, or until ctx ends.
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

// follower gathers what stands behind the newest record.
type follower struct {
	journal      *Journal
	conn         *nats.Conn
	tail         chan *nats.Msg
	batch        frameBatch
	moreInStream bool // there is more to fetch than was fetched
}

// renewLoop is frames that follow each other.
type frameBatch struct {
	last     uint64 // sequence of the newest
	checksum uint32 // its checksum
	frames   []frame
	bytes    int
}

func (r *frameBatch) full() bool {
	return len(r.frames) >= fetchRecordsMax || r.bytes+frameBytesMax > wal.BatchBytesMax
}

// add takes a message in. One that was there before is passed over; gap reports one that comes too early.
func (r *frameBatch) add(sequence uint64, body []byte) (gap bool, err error) {
	if sequence <= r.last {
		return false, nil
	}
	if sequence > r.last+1 {
		return true, nil
	}
	f, err := decodeFrame(sequence, body)
	if err == nil {
		err = f.checkPrevious(r.checksum)
	}
	if err != nil {
		return false, err
	}
	r.last, r.checksum = sequence, checksum(f.record)
	r.frames, r.bytes = append(r.frames, f), r.bytes+len(body)
	return false, nil
}

// next waits for at least one frame behind the newest record.
func (f *follower) next(ctx context.Context) ([]frame, error) {
	f.batch = frameBatch{}
	f.batch.last, f.batch.checksum = f.journal.position()
	wait := pollIntervalMin
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
		d := idlePollInterval
		if f.journal.recordExpected() {
			d, wait = wait, min(2*wait, pollIntervalMax)
		}
		timer.Reset(d)
		select {
		case m := <-f.tail:
			gap, err = f.receive(m)
		case <-f.journal.wake:
			continue // the tail is mostly as fast as the hint
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

// drain takes what has come meanwhile.
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
		return 0, fmt.Errorf("a message of the stream without its sequence: %w", err)
	}
	return sequence, nil
}

// fetch asks the nearest copy of the stream for what stands behind the run. Nothing, or no answer, is no error.
func (f *follower) fetch(ctx context.Context) error {
	f.moreInStream = false
	inbox := f.conn.NewRespInbox()
	answers, err := f.conn.SubscribeSync(inbox)
	if err != nil {
		return err
	}
	defer func() { _ = unsubscribe(answers) }()
	ask, err := json.Marshal(struct {
		From  uint64 `json:"seq"`
		Batch int    `json:"batch"`
		Bytes int    `json:"max_bytes"`
	}{f.batch.last + 1, fetchRecordsMax, fetchBytesMax})
	if err == nil {
		err = f.conn.PublishRequest(subjectFetch, inbox, ask)
	}
	for err == nil && !f.batch.full() {
		wait, cancel := context.WithTimeout(ctx, fetchTimeout)
		var m *nats.Msg
		m, err = answers.NextMsgWithContext(wait)
		cancel()
		if err != nil {
			return ignoreNoAnswer(ctx, err)
		}
		if m.Header.Get(headerStatus) != "" { // the end of what was asked for, or nothing
			left := m.Header.Get(headerPending)
			f.moreInStream = left != "" && left != "0"
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
		return fmt.Errorf("the stream has record %d, not %d, which this node needs: start the node again, then it gets a copy of another one; "+
			"if that does not help, stop it, remove its stream directory and start it again", sequence, f.batch.last+1)
	}
	return err
}

// ignoreNoAnswer is nil for an answer that did not come.
func ignoreNoAnswer(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrNoResponders) {
		return nil
	}
	return err
}
