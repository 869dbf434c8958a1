//go:build !nocluster

package cluster

import (
	"context"
	"fmt"
	"time"
)

const (
	leaderPollInterval = 50 * time.Millisecond
	takeoverPolls      = 8
)

// Lease is the right to do a task that only the leader of the cluster does. For a moment after a failure two nodes may
// hold it, until the former leader notices that it has lost the majority, so correctness must not depend on it.
type Lease struct {
	lost   chan struct{} // closed when this node no longer leads, or when the lease is released
	cancel context.CancelFunc
	done   chan struct{}
}

// Acquire waits until this node leads. If ctx ends first, it returns an error. name is for the log.
func (c *Cluster) Acquire(ctx context.Context, name string) (*Lease, error) {
	if err := checkName("name of a lease", name); err != nil {
		return nil, err
	}
	// A leader that hands over notices it within leaderPollInterval, so the next one waits for several of them.
	for polls := 0; c.ctx.Err() != nil || ctx.Err() != nil || polls < takeoverPolls; polls++ {
		if !c.leadsNow() {
			polls = -1
		}
		if c.ctx.Err() != nil {
			return nil, errClosed
		}
		if err := sleep(ctx, leaderPollInterval); err != nil {
			return nil, fmt.Errorf("acquire the lease %s: %w", name, err)
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
	for c.leadsNow() && sleep(ctx, leaderPollInterval) == nil {
	}
}

// leadsNow reports whether this node leads and has applied what earlier leaders committed.
func (c *Cluster) leadsNow() bool {
	r := c.replica.Load()
	return r != nil && r.leads.Load() && c.Health().Majority && r.votersReached()
}

// leaseContact must be shorter than the time after which nodes that do not hear the leader elect another one.
const leaseContact = electionTicks*tickInterval - 300*time.Millisecond

// votersReached reports whether this node has had a heartbeat of a majority of the voters within leaseContact.
func (r *replica) votersReached() bool {
	now, reached := r.c.config.Clock(), map[uint64]bool{r.id: true}
	for _, h := range r.c.peers.reachable(now) {
		if now.Sub(h.receivedAt) < leaseContact {
			reached[h.Raft] = true
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	count := 0
	for _, id := range r.voters {
		if reached[id] {
			count++
		}
	}
	return 2*count > len(r.voters)
}

// Lost returns a channel that is closed when the lease is lost or released. The holder must then stop the task.
func (l *Lease) Lost() <-chan struct{} { return l.lost }

// Release releases the lease.
func (l *Lease) Release() {
	l.cancel()
	<-l.done
}
