package cluster

import (
	"context"
	"fmt"
	"time"
)

const (
	leasePollInterval = 100 * time.Millisecond
	// leaseTime is how long a leader may believe that it still leads after a majority has confirmed it. A new leader holds
	// no lease for this time, and two polls more, in which its predecessor notices that its lease has ended.
	leaseTime = 800 * time.Millisecond
)

// Lease is the right to do a task that only the leader of the cluster does. At most one node holds it: a majority that
// has elected another leader has not confirmed this one since then. The task itself may go on for a moment after Lost,
// so correctness must not depend on it.
type Lease struct {
	lost   chan struct{} // closed when this node no longer leads, or when the lease is released
	cancel context.CancelFunc
	done   chan struct{}
}

// Acquire waits until this node leads. If ctx ends first, it returns an error.
func (c *Cluster) Acquire(ctx context.Context) (*Lease, error) {
	for ctx.Err() != nil || !c.holdsLease() {
		if c.ctx.Err() != nil {
			return nil, errClosed
		}
		if err := sleep(ctx, leasePollInterval); err != nil {
			return nil, fmt.Errorf("acquire the lease of the leader: %w", err)
		}
	}
	l := &Lease{lost: make(chan struct{}), done: make(chan struct{})}
	var held context.Context
	held, l.cancel = context.WithCancel(c.ctx)
	if !c.tasks.start(func() { l.watch(held, c) }) {
		l.cancel()
		return nil, errClosed
	}
	return l, nil
}

func (l *Lease) watch(ctx context.Context, c *Cluster) {
	defer close(l.done)
	defer close(l.lost)
	for c.holdsLease() && sleep(ctx, leasePollInterval) == nil {
	}
}

// holdsLease reports whether this node leads, a majority has confirmed that within leaseTime, and no earlier leader can
// still hold the lease. It also asks for the next confirmation.
func (c *Cluster) holdsLease() bool {
	r := c.replica.Load()
	if r == nil || !r.leads.Load() || !r.votersComplete() || !r.caughtUp() {
		return false
	}
	r.requestReadIndex()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.readIndexAskedAt.Sub(r.ledSince) > leaseTime+2*leasePollInterval && c.config.Clock().Sub(r.readIndexAskedAt) < leaseTime
}

// Lost returns a channel that is closed when the lease is lost or released. The holder must then stop the task.
func (l *Lease) Lost() <-chan struct{} { return l.lost }

// Release releases the lease.
func (l *Lease) Release() {
	l.cancel()
	<-l.done
}
