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

// majorityTimeout is the time after which a node with a log no longer waits for a majority, and serves reads.
const majorityTimeout = 5 * time.Second

const (
	// firstQueryTimeout is the maximum wait for the first query, which is lost if this node has no connections yet.
	firstQueryTimeout = 250 * time.Millisecond
	// conflictWait is the time for which a new node waits for heartbeats, to detect another node with its node ID.
	conflictWait = 3 * watchInterval
	// takeoverWait is the time for which a new process waits until the other nodes accept it instead of an earlier process
	// with the same node name. They forget a process that has ended after reachableWithin.
	takeoverWait = 2 * reachableWithin
)

// join waits for the JetStream stream, which is the log that the nodes share. If no member has a stream, join creates
// it. If the stream no longer has the records that this node lacks, join copies another node's log. It returns the open
// log. The stream has all records after the end of this log.
func (c *Cluster) join(ctx context.Context, log *wal.Log) (*wal.Log, error) {
	start, cause, timeout := c.config.Clock(), "", firstQueryTimeout
	for {
		if err := c.peers.nodeIDConflict(&c.config); err != nil {
			return log, err
		}
		queryCtx, cancel := context.WithTimeout(ctx, timeout)
		state, err := c.queryStream(queryCtx)
		cancel()
		timeout = min(2*timeout, requestTimeout)
		waited := c.config.Clock().Sub(start)
		peers, accepting, refusing := c.acceptance()
		switch {
		case err == nil && refusing > 0:
			err = c.otherProcessError()
			if waited > takeoverWait {
				return log, err
			}
		case err == nil && (c.self.Load().hasStream() && peers > 0 && accepting == peers || waited > conflictWait):
			return c.reconcile(ctx, log, state)
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
		// Log and keep each new error. A timeout that follows another error is ignored, because the other error says
		// more.
		if err != nil && cause != err.Error() && (cause == "" || ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded)) {
			cause = err.Error()
			c.logger.Info("waiting for the cluster", "cause", cause)
		}
		if ctxErr := sleep(ctx, joinRetryInterval); ctxErr != nil {
			return log, fmt.Errorf("%w; the last answer: %s", ctxErr, cause)
		}
	}
}

// reconcile checks that the stream has the records of the local log. If the stream no longer has the record that comes
// after the end of the local log, it replaces the local log by a copy of another node's.
func (c *Cluster) reconcile(ctx context.Context, log *wal.Log, state streamState) (*wal.Log, error) {
	switch {
	case state.id == "":
		return log, fmt.Errorf("the cluster's stream %q was not created by tasard", streamName)
	case c.self.Load().hasStream() && c.self.Load().Stream != state.id:
		return log, fmt.Errorf("the cluster has stream %s, the directory %s belongs to stream %s: start this node with an empty directory",
			state.id, c.config.Dir, c.self.Load().Stream)
	case !c.self.Load().hasStream() && log.Last() > 0:
		return log, fmt.Errorf("the directory %s has %d records that the cluster does not have: start this node with an empty directory",
			c.config.Dir, log.Last())
	}
	if !c.self.Load().hasStream() || c.self.Load().Bootstrapping {
		if err := c.saveIdentity(identity{Stream: state.id}); err != nil {
			return log, err
		}
	}
	for log.Last()+1 < state.first {
		var err error
		if log, err = c.replaceLog(ctx, log); err != nil {
			return log, err
		}
		if state, err = c.queryStream(ctx); err != nil {
			return log, fmt.Errorf("query the stream: %w", err)
		}
	}
	sum, err := lastChecksum(log)
	if err != nil {
		return log, err
	}
	verifyCtx, cancel := context.WithTimeout(ctx, c.config.verifyTimeout+majorityTimeout)
	defer cancel()
	if err := c.verifyLog(verifyCtx, log.Last(), sum); ctx.Err() != nil || verifyCtx.Err() == nil {
		return log, err
	}
	c.logger.Warn("no majority of the cluster answers, serving from the local log", "last", log.Last())
	return log, nil // Follow calls verifyLog again before it delivers a record
}

func (c *Cluster) saveIdentity(i identity) error {
	i.Process = c.process
	if err := writeIdentity(&c.config, i); err != nil {
		return err
	}
	c.self.Store(&i)
	c.sendHeartbeat()
	return nil
}

// bootstrap creates the stream if this node is the member that has to do it (peerTable.bootstrapMember). If another
// member has to do it, bootstrap returns an error.
func (c *Cluster) bootstrap(ctx context.Context, last uint64) error {
	creator, err := c.peers.bootstrapMember(c.config.Members)
	if err != nil {
		return err
	}
	if creator != c.config.Name {
		return fmt.Errorf("%s is about to create the stream", creator)
	}
	if !c.self.Load().hasStream() {
		id, err := randomID(c.config.Random)
		if err != nil {
			return err
		}
		if err := c.saveIdentity(identity{Stream: id, Bootstrapping: true}); err != nil {
			return err
		}
	}
	c.logger.Info("creating the stream of the cluster", "stream", c.self.Load().Stream, "after", last)
	return c.createStream(ctx, c.self.Load().Stream, last)
}

// replaceLog replaces this node's log by a copy of another node's log, and opens the copy.
func (c *Cluster) replaceLog(ctx context.Context, log *wal.Log) (*wal.Log, error) {
	report, err := c.fetchLog(ctx)
	if err != nil {
		return log, fmt.Errorf("copy the log of another node: %w", err)
	}
	if report.Last <= log.Last() {
		return log, fmt.Errorf("copy the log of another node: it ends with record %d, this node has %d", report.Last, log.Last())
	}
	if err := log.Close(); err != nil {
		return log, err
	}
	if err := install(c.config.Dir); err != nil {
		return log, err
	}
	newLog, err := wal.Open(c.config.Dir, c.config.Log)
	if err != nil {
		return log, err
	}
	c.logger.Info("log copied from another node", "last", report.Last)
	c.last.Store(newLog.Last())
	c.sendHeartbeat()
	return newLog, nil
}
