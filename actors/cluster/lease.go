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
	leaseMargin        = 2 * time.Second // the holder stops this long before another node can acquire the lease; covers clock differences
	leaseRenewInterval = 2 * time.Second
	leaseRetryInterval = time.Second // between attempts to acquire a lease
)

// Lease is an advisory lock for a task that only one node should do at a time. Correctness must not depend on it,
// because two nodes may hold it at the same time for a short time.
type Lease struct {
	cluster *Cluster
	bucket  jetstream.KeyValue
	name    string
	holder  string // value of the key, unique for each acquisition
	lost    chan struct{}
	cancel  context.CancelFunc // stops renewLoop
	done    chan struct{}      // closed when renewLoop has returned

	revision  uint64    // revision of the key after the last confirmed renewal
	renewedAt time.Time // when the request of that renewal was sent
}

// Acquire waits until this node holds the named lease or ctx ends.
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

// tryAcquire acquires the lease if no node holds it. It does not start renewLoop.
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

// bucket opens a key-value bucket that is replicated on all members. It creates the bucket if needed.
func (c *Cluster) bucket(ctx context.Context, name string, ttl time.Duration) (jetstream.KeyValue, error) {
	b, err := c.server.js.KeyValue(ctx, name)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		b, err = c.server.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket: name, TTL: ttl, History: 1, Storage: jetstream.FileStorage, Replicas: len(c.config.Members),
		})
	}
	return b, err
}

// Lost returns a channel that is closed when the lease is lost or released. Work under the lease must then stop.
func (l *Lease) Lost() <-chan struct{} { return l.lost }

// Release releases the lease.
func (l *Lease) Release() {
	l.cancel()
	<-l.done
}

// remaining returns how long this node holds the lease without another renewal. It uses the larger elapsed time of the
// monotonic and the wall clock, because the monotonic clock stops while the machine is suspended.
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

// renew returns false if another node holds the lease. Without a reply it returns true, and remaining decides.
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

// stillHeld reads the key after a revision mismatch, which may come from a renewal of this node whose reply was lost.
func (l *Lease) stillHeld(ctx context.Context) bool {
	entry, err := l.bucket.Get(ctx, l.name)
	if err != nil {
		return !errors.Is(err, jetstream.ErrKeyNotFound)
	}
	if string(entry.Value()) != l.holder {
		return false
	}
	l.revision = entry.Revision() // renewedAt does not change, because the time of this renewal is unknown
	return true
}

// deleteKey deletes the key if this node still holds the lease.
func (l *Lease) deleteKey() {
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	if err := l.bucket.Delete(ctx, l.name, jetstream.LastRevision(l.revision)); err != nil {
		l.cluster.logger.Debug("lease not released, it will expire", "lease", l.name, "cause", err.Error())
	}
}
