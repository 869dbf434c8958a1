package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tasard/tasard/wal"
)

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
	r := j.cluster.replica.Load()
	batch := frameBatch{}
	batch.last, batch.checksum = j.position()
	for {
		queue, err := r.take()
		for i := 0; i < len(queue) && err == nil; i++ {
			err = batch.add(queue[i])
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

// take removes committed records from the queue, up to the limits of one batch of the local log.
func (r *replica) take() ([]frame, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.c.Journal() != nil && r.tooFarBehind() {
		return nil, fmt.Errorf("this node needs records that the cluster no longer has in its log: restart the node, so that it copies another " +
			"node's log")
	}
	n, size := 0, 0
	for n < len(r.queue) && n < framesMax && (n == 0 || size+len(r.queue[n].record) <= wal.BatchBytesMax-framesMax*4) {
		size += len(r.queue[n].record)
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
