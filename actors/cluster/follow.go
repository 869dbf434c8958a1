package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tasard/tasard/wal"
)

const (
	framesMax          = 256 // records of one batch of the local log
	spaceRetryInterval = 500 * time.Millisecond
)

// Follow implements actors.Shared: it copies the committed records to the local log (this node's own copy), and passes
// them to deliver.
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

// next waits until it has the next frames, at least one.
func (j *Journal) next(ctx context.Context) ([]frame, error) {
	r := j.cluster.replica.Load()
	batch := frameBatch{}
	batch.last, batch.checksum = j.position()
	for {
		queue, err := r.take()
		for _, f := range queue {
			if err == nil {
				err = batch.add(f.sequence, f.body)
			}
		}
		if err != nil || len(batch.frames) > 0 {
			return batch.frames, err
		}
		select {
		case <-r.wake:
		case err = <-j.stop:
			return nil, err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// take removes committed records from the queue, at most as many as a batch of the local log has.
func (r *replica) take() ([]committedFrame, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.c.Journal() != nil && r.tooFarBehind() {
		return nil, fmt.Errorf("this node needs records that the cluster no longer has in its log: restart the node, so that it copies another " +
			"node's log")
	}
	n, size := 0, 0
	for n < len(r.queue) && n < framesMax && (n == 0 || size+len(r.queue[n].body) <= wal.BatchBytesMax-framesMax*4) {
		size += len(r.queue[n].body)
		n++
	}
	taken := r.queue[:n:n]
	r.queue, r.queued = r.queue[n:], r.queued-size
	if n > 0 {
		r.notify()
		return taken, nil
	}
	return nil, r.err
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

// frameBatch has frames whose sequences are consecutive.
type frameBatch struct {
	last     uint64 // sequence of the newest frame or, without frames, of the newest record in the local log
	checksum uint32 // checksum of that record
	frames   []frame
}

// add appends a frame. It ignores a frame that the local log already has.
func (b *frameBatch) add(sequence uint64, body []byte) error {
	if sequence < b.last {
		return nil
	}
	if sequence > b.last+1 {
		return fmt.Errorf("record %d follows record %d: %w", sequence, b.last, ErrDiverged)
	}
	f, err := decodeFrame(sequence, body)
	if err != nil {
		return err
	}
	if sequence == b.last {
		if b.checksum != 0 && checksum(f.record) != b.checksum {
			return fmt.Errorf("record %d: %w: keep a copy of the directory and start this node with an empty one", sequence, ErrDiverged)
		}
		return nil
	}
	if err := f.checkPrevious(b.checksum); err != nil {
		return err
	}
	b.last, b.checksum = sequence, checksum(f.record)
	b.frames = append(b.frames, f)
	return nil
}
