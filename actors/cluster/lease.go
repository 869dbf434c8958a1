//go:build !nocluster

package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	bucketLease        = "lease"
	leaseTTL           = 12 * time.Second
	leaseMargin        = 2 * time.Second // the holder stops so long before the others may take it; covers clocks that differ
	leaseRenewInterval = 2 * time.Second
	leaseRetryInterval = time.Second // of those that wait
)

// Lease is the right to do what only one node does at a time. It is a courtesy between nodes, not a lock: what its holder writes
// is decided by the log as everything is.
type Lease struct {
	cluster *Cluster
	bucket  jetstream.KeyValue
	name    string
	holder  string // of this holder alone
	lost    chan struct{}
	cancel  context.CancelFunc // ends the renewals
	done    chan struct{}      // closed when they have ended

	revision  uint64    // of the newest renewal that was taken
	renewedAt time.Time // when it had been sent
}

// Acquire waits until this node holds the lease with this name, or ctx ends.
func (c *Cluster) Acquire(ctx context.Context, name string) (*Lease, error) {
	if err := checkName("name of a lease", name); err != nil {
		return nil, err
	}
	for {
		l, err := c.tryAcquire(ctx, name)
		switch {
		case err == nil:
			var renewing context.Context
			renewing, l.cancel = context.WithCancel(c.ctx)
			if c.tasks.start(func() { l.renewLoop(renewing) }) {
				return l, nil
			}
			l.cancel()
		case !errors.Is(err, jetstream.ErrKeyExists):
			c.logger.Debug("lease not taken", "lease", name, "cause", err.Error())
		}
		if c.ctx.Err() != nil {
			return nil, errClosed
		}
		if stop := sleep(ctx, leaseRetryInterval); stop != nil {
			return nil, fmt.Errorf("take the lease %s: %w", name, stop)
		}
	}
}

// receive takes the lease if it is free, and does not renew it.
func (c *Cluster) tryAcquire(ctx context.Context, name string) (*Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	bucket, err := c.bucket(ctx, bucketLease, leaseTTL)
	if err != nil {
		return nil, err
	}
	value, err := randomID(c.config.Random)
	if err != nil {
		return nil, err
	}
	l := &Lease{
		cluster: c, bucket: bucket, name: name, holder: c.config.Name + " " + value,
		lost: make(chan struct{}), done: make(chan struct{}), renewedAt: c.config.Clock(),
	}
	l.revision, err = bucket.Create(ctx, name, []byte(l.holder))
	return l, err
}

// bucket opens a bucket with a copy on every member, and makes it when there is none.
func (c *Cluster) bucket(ctx context.Context, name string, ttl time.Duration) (jetstream.KeyValue, error) {
	b, err := c.server.js.KeyValue(ctx, name)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		b, err = c.server.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket: name, TTL: ttl, History: 1, Storage: jetstream.FileStorage, Replicas: len(c.config.Members),
		})
	}
	return b, err
}

// Lost is closed when the lease is no longer held, also after Release. What it allowed must end then.
func (l *Lease) Lost() <-chan struct{} { return l.lost }

// Release gives the lease to whoever waits for it.
func (l *Lease) Release() {
	l.cancel()
	<-l.done
}

// remaining is for how long the lease is held without another renewal, by either clock: the monotonic one stands still while the machine
// sleeps.
func (l *Lease) remaining() time.Duration {
	now := l.cluster.config.Clock()
	return leaseTTL - leaseMargin - max(now.Sub(l.renewedAt), now.Round(0).Sub(l.renewedAt.Round(0)))
}

// renewLoop renews the lease until it is released or lost.
func (l *Lease) renewLoop(ctx context.Context) {
	defer close(l.done)
	defer l.cancel()
	for {
		if sleep(ctx, min(leaseRenewInterval, max(l.remaining(), 0))) != nil {
			close(l.lost)
			l.deleteKey()
			return
		}
		if !l.renew(ctx) || l.remaining() <= 0 {
			l.cluster.logger.Warn("lease lost", "lease", l.name)
			close(l.lost)
			return
		}
	}
}

// moveStreamAway is false when somebody else has the lease. An answer that does not come takes nothing away yet.
func (l *Lease) renew(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, min(requestTimeout, max(l.remaining(), 0)))
	defer cancel()
	sent := l.cluster.config.Clock()
	next, err := l.bucket.Update(ctx, l.name, []byte(l.holder), l.revision)
	if err == nil {
		l.revision, l.renewedAt = next, sent
		return true
	}
	if !errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		l.cluster.logger.Debug("lease not renewed", "lease", l.name, "cause", err.Error())
		return true
	}
	return l.stillHeld(ctx)
}

// stillHeld looks whose the lease is: a renewal of this node may have been taken without an answer.
func (l *Lease) stillHeld(ctx context.Context) bool {
	entry, err := l.bucket.Get(ctx, l.name)
	if err != nil {
		return !errors.Is(err, jetstream.ErrKeyNotFound)
	}
	if string(entry.Value()) != l.holder {
		return false
	}
	l.revision = entry.Revision() // when it was sent is not known: the time runs from the one before
	return true
}

// deleteKey removes the lease, if it is still this node's.
func (l *Lease) deleteKey() {
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	if err := l.bucket.Delete(ctx, l.name, jetstream.LastRevision(l.revision)); err != nil {
		l.cluster.logger.Debug("lease not given back, it runs out", "lease", l.name, "cause", err.Error())
	}
}
