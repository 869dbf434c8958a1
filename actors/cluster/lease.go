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
	leaseMargin        = 2 * time.Second // a lease counts as lost this long before leaseTTL ends, because clocks differ
	leaseRenewInterval = 2 * time.Second
	leaseRetryInterval = time.Second // between attempts to acquire a lease
)

// Lease is a lock for a task that only one node should do at a time. For a short time two nodes may hold the same
// lease, so correctness must not depend on it.
type Lease struct {
	cluster *Cluster
	bucket  jetstream.KeyValue
	name    string
	holder  string             // value of the lease's key in the key-value bucket; unique for each acquisition
	lost    chan struct{}      // closed when the lease is lost or released
	cancel  context.CancelFunc // stops renewLoop
	done    chan struct{}      // closed when renewLoop has returned

	revision  uint64    // revision of the key after the newest renewal
	renewedAt time.Time // when this node sent the newest successful renewal
}

// Acquire waits until this node holds the named lease. If ctx ends first, it returns an error.
func (c *Cluster) Acquire(ctx context.Context, name string) (*Lease, error) {
	if err := checkName("name of a lease", name); err != nil {
		return nil, err
	}
	for {
		l, err := c.tryAcquire(ctx, name)
		switch {
		case err == nil:
			var renewCtx context.Context
			renewCtx, l.cancel = context.WithCancel(c.ctx)
			if c.tasks.start(func() { l.renewLoop(renewCtx) }) {
				return l, nil
			}
			l.cancel()
		case !errors.Is(err, jetstream.ErrKeyExists):
			c.logger.Debug("lease not acquired", "lease", name, "cause", err.Error())
		}
		if c.ctx.Err() != nil {
			return nil, errClosed
		}
		if ctxErr := sleep(ctx, leaseRetryInterval); ctxErr != nil {
			return nil, fmt.Errorf("acquire the lease %s: %w", name, ctxErr)
		}
	}
}

// tryAcquire acquires the lease if no node holds it, else it returns jetstream.ErrKeyExists. It does not start
// renewLoop.
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

// bucket opens a key-value bucket that is replicated on all members. It creates a missing bucket.
func (c *Cluster) bucket(ctx context.Context, name string, ttl time.Duration) (jetstream.KeyValue, error) {
	b, err := c.server.js.KeyValue(ctx, name)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		b, err = c.server.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket: name, TTL: ttl, History: 1, Storage: jetstream.FileStorage, Replicas: len(c.config.Members),
		})
	}
	return b, err
}

// Lost returns a channel that is closed when the lease is lost or released. The holder must then stop the task.
func (l *Lease) Lost() <-chan struct{} { return l.lost }

// Release releases the lease. If the cluster does not answer, the lease expires later.
func (l *Lease) Release() {
	l.cancel()
	<-l.done
}

// remaining returns the time for which this node still holds the lease without another renewal. It compares both the
// monotonic clock and the wall clock with renewedAt, because the monotonic clock stops while the machine is suspended.
func (l *Lease) remaining() time.Duration {
	now := l.cluster.config.Clock()
	return leaseTTL - leaseMargin - max(now.Sub(l.renewedAt), now.Round(0).Sub(l.renewedAt.Round(0)))
}

// renewLoop renews the lease until the lease is released or lost.
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

// renew tries to renew the lease. It returns false only if this node certainly no longer holds the lease.
func (l *Lease) renew(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, min(requestTimeout, max(l.remaining(), 0)))
	defer cancel()
	sentAt := l.cluster.config.Clock()
	revision, err := l.bucket.Update(ctx, l.name, []byte(l.holder), l.revision)
	if err == nil {
		l.revision, l.renewedAt = revision, sentAt
		return true
	}
	if !errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		l.cluster.logger.Debug("lease not renewed", "lease", l.name, "cause", err.Error())
		return true
	}
	return l.stillHeld(ctx)
}

// stillHeld is called if the key has another revision than expected. The cause may be an earlier renewal of this node
// whose reply was lost. Then stillHeld returns true.
func (l *Lease) stillHeld(ctx context.Context) bool {
	entry, err := l.bucket.Get(ctx, l.name)
	if err != nil {
		return !errors.Is(err, jetstream.ErrKeyNotFound)
	}
	if string(entry.Value()) != l.holder {
		return false
	}
	l.revision = entry.Revision() // keep renewedAt, because the time of that renewal is unknown
	return true
}

func (l *Lease) deleteKey() {
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	if err := l.bucket.Delete(ctx, l.name, jetstream.LastRevision(l.revision)); err != nil {
		l.cluster.logger.Debug("lease not released, it will expire", "lease", l.name, "cause", err.Error())
	}
}
