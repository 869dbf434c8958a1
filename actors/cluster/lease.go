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
	bucketLease = "lease"
	leaseTTL    = 12 * time.Second
	leaseMargin = 2 * time.Second // the holder stops so long before the others may take it; covers clocks that differ
	leaseRenew  = 2 * time.Second
	leaseLook   = time.Second // of those that wait
)

// Lease is the right to do what only one node does at a time. It is a courtesy between nodes, not a lock: what its holder writes
// is decided by the log as everything is.
type Lease struct {
	cluster *Cluster
	bucket  jetstream.KeyValue
	name    string
	value   string // of this holder alone
	lost    chan struct{}
	release context.CancelFunc // ends the renewals
	ended   chan struct{}      // closed when they have ended

	revision uint64    // of the newest renewal that was taken
	sent     time.Time // when it had been sent
}

// Acquire waits until this node holds the lease with this name, or ctx ends.
func (c *Cluster) Acquire(ctx context.Context, name string) (*Lease, error) {
	if err := checkName("name of a lease", name); err != nil {
		return nil, err
	}
	for {
		l, err := c.take(ctx, name)
		switch {
		case err == nil:
			var renewing context.Context
			renewing, l.release = context.WithCancel(c.life)
			if c.crew.start(func() { l.run(renewing) }) {
				return l, nil
			}
			l.release()
		case !errors.Is(err, jetstream.ErrKeyExists):
			c.logger.Debug("lease not taken", "lease", name, "cause", err.Error())
		}
		if c.life.Err() != nil {
			return nil, errEnded
		}
		if stop := pause(ctx, leaseLook); stop != nil {
			return nil, fmt.Errorf("take the lease %s: %w", name, stop)
		}
	}
}

// take takes the lease if it is free, and does not renew it.
func (c *Cluster) take(ctx context.Context, name string) (*Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	bucket, err := c.bucket(ctx, bucketLease, leaseTTL)
	if err != nil {
		return nil, err
	}
	value, err := draw(c.config.Random)
	if err != nil {
		return nil, err
	}
	l := &Lease{
		cluster: c, bucket: bucket, name: name, value: c.config.Name + " " + value,
		lost: make(chan struct{}), ended: make(chan struct{}), sent: c.config.Clock(),
	}
	l.revision, err = bucket.Create(ctx, name, []byte(l.value))
	return l, err
}

// bucket opens a bucket with a copy on every member, and makes it when there is none.
func (c *Cluster) bucket(ctx context.Context, name string, ttl time.Duration) (jetstream.KeyValue, error) {
	b, err := c.node.js.KeyValue(ctx, name)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		b, err = c.node.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket: name, TTL: ttl, History: 1, Storage: jetstream.FileStorage, Replicas: len(c.config.Members),
		})
	}
	return b, err
}

// Lost is closed when the lease is no longer held, also after Release. What it allowed must end then.
func (l *Lease) Lost() <-chan struct{} { return l.lost }

// Release gives the lease to whoever waits for it.
func (l *Lease) Release() {
	l.release()
	<-l.ended
}

// left is for how long the lease is held without another renewal, by either clock: the monotonic one stands still while the machine
// sleeps.
func (l *Lease) left() time.Duration {
	now := l.cluster.config.Clock()
	return leaseTTL - leaseMargin - max(now.Sub(l.sent), now.Round(0).Sub(l.sent.Round(0)))
}

// run renews the lease until it is released or lost.
func (l *Lease) run(ctx context.Context) {
	defer close(l.ended)
	defer l.release()
	for {
		if pause(ctx, min(leaseRenew, max(l.left(), 0))) != nil {
			close(l.lost)
			l.giveBack()
			return
		}
		if !l.renew(ctx) || l.left() <= 0 {
			l.cluster.logger.Warn("lease lost", "lease", l.name)
			close(l.lost)
			return
		}
	}
}

// renew is false when somebody else has the lease. An answer that does not come takes nothing away yet.
func (l *Lease) renew(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, min(askWait, max(l.left(), 0)))
	defer cancel()
	sent := l.cluster.config.Clock()
	next, err := l.bucket.Update(ctx, l.name, []byte(l.value), l.revision)
	if err == nil {
		l.revision, l.sent = next, sent
		return true
	}
	if !errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		l.cluster.logger.Debug("lease not renewed", "lease", l.name, "cause", err.Error())
		return true
	}
	return l.adopt(ctx)
}

// adopt looks whose the lease is: a renewal of this node may have been taken without an answer.
func (l *Lease) adopt(ctx context.Context) bool {
	entry, err := l.bucket.Get(ctx, l.name)
	if err != nil {
		return !errors.Is(err, jetstream.ErrKeyNotFound)
	}
	if string(entry.Value()) != l.value {
		return false
	}
	l.revision = entry.Revision() // when it was sent is not known: the time runs from the one before
	return true
}

// giveBack removes the lease, if it is still this node's.
func (l *Lease) giveBack() {
	ctx, cancel := context.WithTimeout(context.Background(), askWait)
	defer cancel()
	if err := l.bucket.Delete(ctx, l.name, jetstream.LastRevision(l.revision)); err != nil {
		l.cluster.logger.Debug("lease not given back, it runs out", "lease", l.name, "cause", err.Error())
	}
}
