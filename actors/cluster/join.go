//go:build !nocluster

package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tasard/tasard/wal"
)

// majorityTimeout is how long a node with a log waits for the others before it serves reads from that log.
const majorityTimeout = 5 * time.Second

// conflictWait is how long a new node listens for heartbeats, in case another node has its number.
const conflictWait = 3 * watchInterval

// join brings the local log to where the stream can be followed: it finds or creates the stream, and copies another
// node's log when the stream no longer has the records that this node lacks.
func (c *Cluster) join(ctx context.Context, log *wal.Log) (*wal.Log, error) {
	began, cause := c.config.Clock(), ""
	for {
		if err := c.peers.numberConflict(&c.config); err != nil {
			return log, err
		}
		e, err := c.queryStream(ctx)
		waited := c.config.Clock().Sub(began)
		switch {
		case err == nil && (c.self.Load().hasStream() || waited > conflictWait):
			return c.reconcile(ctx, log, e)
		case err == nil:
		case errors.Is(err, jetstream.ErrStreamNotFound) && c.self.Load().hasStream() && !c.self.Load().Bootstrapping:
			err = fmt.Errorf("the cluster has no stream, and this directory belongs to stream %s: %s", c.self.Load().Stream, hintRestore)
			if waited > c.config.verifyTimeout {
				return log, err
			}
		case errors.Is(err, jetstream.ErrStreamNotFound):
			err = c.bootstrap(ctx, log.Last())
		case c.self.Load().hasStream() && log.Last() > 0 && waited > majorityTimeout:
			c.logger.Warn("no majority of the cluster answers, serving from the local log", "last", log.Last())
			return log, nil
		}
		// A timeout is less informative than an earlier answer.
		if err != nil && cause != err.Error() && (cause == "" || ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded)) {
			cause = err.Error()
			c.logger.Info("waiting for the cluster", "cause", cause)
		}
		if stop := sleep(ctx, joinRetryInterval); stop != nil {
			return log, fmt.Errorf("%w; the last answer: %s", stop, cause)
		}
	}
}

// reconcile checks that the local log belongs to the existing stream, and replaces it if it is too old to continue.
func (c *Cluster) reconcile(ctx context.Context, log *wal.Log, e streamState) (*wal.Log, error) {
	switch {
	case e.id == "":
		return log, fmt.Errorf("the cluster's stream %q was not created by tasard", streamName)
	case c.self.Load().hasStream() && c.self.Load().Stream != e.id:
		return log, fmt.Errorf("the cluster has stream %s, the directory %s belongs to stream %s: start this node with an empty directory",
			e.id, c.config.Dir, c.self.Load().Stream)
	case !c.self.Load().hasStream() && log.Last() > 0:
		return log, fmt.Errorf("the directory %s has %d records that the cluster does not have: start this node with an empty directory",
			c.config.Dir, log.Last())
	}
	if !c.self.Load().hasStream() || c.self.Load().Bootstrapping {
		if err := c.saveIdentity(identity{Stream: e.id}); err != nil {
			return log, err
		}
	}
	for log.Last()+1 < e.first {
		var err error
		if log, err = c.replaceLog(ctx, log); err != nil {
			return log, err
		}
		if e, err = c.queryStream(ctx); err != nil {
			return log, fmt.Errorf("query the stream: %w", err)
		}
	}
	return log, nil
}

// saveIdentity stores which stream this directory belongs to.
func (c *Cluster) saveIdentity(i identity) error {
	if err := writeIdentity(&c.config, i); err != nil {
		return err
	}
	c.self.Store(&i)
	c.sendHeartbeat()
	return nil
}

// bootstrap creates the stream if it is this node's turn: all members are reachable, none belongs to a stream, and
// this one has a log or, if none has, is the first in the list.
func (c *Cluster) bootstrap(ctx context.Context, last uint64) error {
	creator, err := c.peers.bootstrapMember(c.config.Members)
	if err != nil {
		return err
	}
	if creator != c.config.Name {
		return fmt.Errorf("%s is about to create the stream", creator)
	}
	if !c.self.Load().hasStream() {
		number, err := randomID(c.config.Random)
		if err != nil {
			return err
		}
		if err := c.saveIdentity(identity{Stream: number, Bootstrapping: true}); err != nil {
			return err
		}
	}
	c.logger.Info("creating the stream of the cluster", "stream", c.self.Load().Stream, "after", last)
	return c.createStream(ctx, c.self.Load().Stream, last)
}

// replaceLog copies another node's log and opens it in place of this one's.
func (c *Cluster) replaceLog(ctx context.Context, log *wal.Log) (*wal.Log, error) {
	info, err := c.fetchBackup(ctx)
	if err != nil {
		return log, fmt.Errorf("copy the log of another node: %w", err)
	}
	if info.Last <= log.Last() {
		return log, fmt.Errorf("copy the log of another node: it ends with record %d, this node has %d", info.Last, log.Last())
	}
	if err := log.Close(); err != nil {
		return log, err
	}
	if err := install(&c.config); err != nil {
		return log, err
	}
	fresh, err := wal.Open(c.config.Dir, c.config.Log)
	if err != nil {
		return log, err
	}
	c.logger.Info("log copied from another node", "snapshot", info.Snapshot, "last", info.Last)
	c.last.Store(fresh.Last())
	c.sendHeartbeat()
	return fresh, nil
}
