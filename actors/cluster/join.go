//go:build !nocluster

package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tasard/tasard/wal"
)

// majorityTimeout is how long a node that has a copy waits for the others before it goes on with what it has: reads are served then.
const majorityTimeout = 5 * time.Second

// conflictWait is how long a new node listens to the others: one of them may have its number.
const conflictWait = 3 * watchInterval

// join brings this node's copy to where the stream can be followed: it finds the stream, or makes it, and gets what is gone from it.
func (c *Cluster) join(ctx context.Context, log *wal.Log) (*wal.Log, error) {
	began, told := c.config.Clock(), ""
	for {
		if err := c.peers.numberConflict(&c.config); err != nil {
			return log, err
		}
		e, err := c.queryStream(ctx)
		waited := c.config.Clock().Sub(began)
		switch {
		case err == nil && (c.self.hasStream() || waited > conflictWait):
			return c.reconcile(ctx, log, e)
		case err == nil:
		case isStreamMissing(err) && c.self.hasStream() && !c.self.Bootstrapping:
			err = fmt.Errorf("the cluster has no stream, and this directory is a copy of stream %s: %s", c.self.Stream, hintRestore)
			if waited > c.config.verifyTimeout {
				return log, err
			}
		case isStreamMissing(err):
			err = c.bootstrap(ctx, log.Last())
		case c.self.hasStream() && log.Last() > 0 && waited > majorityTimeout:
			c.logger.Warn("no majority of the cluster answers, this node goes on with what it has", "last", log.Last())
			return log, nil
		}
		// No answer in time tells less than an answer from before.
		if err != nil && told != err.Error() && (told == "" || ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded)) {
			told = err.Error()
			c.logger.Info("waiting for the cluster", "cause", told)
		}
		if stop := sleep(ctx, joinRetryInterval); stop != nil {
			return log, fmt.Errorf("%w; the last answer: %s", stop, told)
		}
	}
}

// reconcile holds the copy against the stream that is there.
func (c *Cluster) reconcile(ctx context.Context, log *wal.Log, e streamState) (*wal.Log, error) {
	switch {
	case e.id == "":
		return log, fmt.Errorf("the cluster has a stream %q that no node of tasard made", streamName)
	case c.self.hasStream() && c.self.Stream != e.id:
		return log, fmt.Errorf("the cluster has stream %s, the directory %s is a copy of stream %s: start this node with an empty directory",
			e.id, c.config.Dir, c.self.Stream)
	case !c.self.hasStream() && log.Last() > 0:
		return log, fmt.Errorf("the directory %s has %d records that the cluster does not know: start this node with an empty directory",
			c.config.Dir, log.Last())
	}
	if !c.self.hasStream() || c.self.Bootstrapping {
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
			return log, fmt.Errorf("ask where the stream begins: %w", err)
		}
	}
	return log, nil
}

// saveIdentity keeps which stream this directory belongs to.
func (c *Cluster) saveIdentity(i identity) error {
	if err := writeIdentity(&c.config, i); err != nil {
		return err
	}
	c.mu.Lock()
	c.self = i
	c.mu.Unlock()
	c.sendHeartbeat()
	return nil
}

// bootstrap makes the stream if that is this node's turn: all members are there, none of them belongs to a stream, and this one brings
// the records, or is the first in the list when none does.
func (c *Cluster) bootstrap(ctx context.Context, last uint64) error {
	founder, err := c.peers.bootstrapMember(c.config.Members)
	if err != nil {
		return err
	}
	if founder != c.config.Name {
		return fmt.Errorf("%s is about to make the stream", founder)
	}
	if !c.self.hasStream() {
		number, err := randomID(c.config.Random)
		if err != nil {
			return err
		}
		if err := c.saveIdentity(identity{Stream: number, Bootstrapping: true}); err != nil {
			return err
		}
	}
	c.logger.Info("making the stream of the cluster", "stream", c.self.Stream, "behind", last)
	return c.createStream(ctx, c.self.Stream, last)
}

// replaceLog gets a copy of another node and opens it in the place of this node's log.
func (c *Cluster) replaceLog(ctx context.Context, log *wal.Log) (*wal.Log, error) {
	info, err := c.fetchBackup(ctx)
	if err != nil {
		return log, fmt.Errorf("get a copy of the log: %w", err)
	}
	if info.Last <= log.Last() {
		return log, fmt.Errorf("get a copy of the log: it ends with record %d, this node has %d", info.Last, log.Last())
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
	c.logger.Info("got a copy of the log", "snapshot", info.Snapshot, "last", info.Last)
	c.last.Store(fresh.Last())
	c.sendHeartbeat()
	return fresh, nil
}
