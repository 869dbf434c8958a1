package cluster

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tasard/tasard/wal"
)

const (
	joinRetryInterval = 20 * time.Millisecond
	// majorityTimeout is the time after which a node with a log no longer waits for a majority, and serves reads.
	majorityTimeout = 5 * time.Second
	// takeoverWait is the time for which a new process waits until the other nodes accept it instead of an earlier
	// process of the same node. They refuse it until the connections of that process have ended.
	takeoverWait = 2 * silenceMax

	codeKeyBytes = 32
)

// join starts raft and waits until this node has received all committed entries. If there is no stream yet, the first
// member or the member with a log creates it (bootstrap). If the other nodes no longer have the entries that this node
// lacks, join copies another node's log. It returns the open log.
func (c *Cluster) join(ctx context.Context, log *wal.Log) (_ *wal.Log, err error) {
	c.tasks.start(func() {
		defer close(c.replicaDone)
		c.replica.run()
	})
	start, cause := c.config.Clock(), ""
	for {
		waited := c.config.Clock().Sub(start)
		var done bool
		if log, done, err = c.tryJoin(ctx, log, waited); done {
			return log, err
		}
		if err != nil && cause != err.Error() {
			cause = err.Error()
			c.logger.Info("waiting for the cluster", "cause", cause)
		}
		if ctxErr := sleep(ctx, joinRetryInterval); ctxErr != nil {
			return log, fmt.Errorf("%w; the last answer: %s", ctxErr, cause)
		}
	}
}

// tryJoin takes the next step of join. If done is false, err says what the node waits for.
func (c *Cluster) tryJoin(ctx context.Context, log *wal.Log, waited time.Duration) (_ *wal.Log, done bool, err error) {
	r, hasStream := c.replica, c.self.Load().hasStream()
	if err := r.failure(); err != nil {
		return log, true, err
	}
	_, refusing := c.transport.acceptance()
	switch {
	case refusing > 0:
		return log, waited > takeoverWait, c.otherProcessError()
	case c.removedError() != nil:
		return log, true, c.removedError()
	case r.older.Load():
		return log, true, errOlder
	}
	if offer := r.takeOffer(); offer != nil {
		return c.acceptOffer(ctx, log, offer)
	}
	r.requestReadIndex()
	switch {
	case !hasStream:
		return log, false, c.bootstrap(log.Last())
	case r.caughtUp() && !r.votes() && waited < majorityTimeout:
		return log, false, errors.New("this node does not vote yet")
	case r.caughtUpSince(c.copiedAt) && (c.Health().Majority || waited > majorityTimeout): // changes need the majority
		return log, true, r.checkEnd(log.Last())
	case waited > majorityTimeout && log.Last() > 0 && r.state.Load().Stream != "": // without state it needs the leader's snapshot
		c.logger.Warn("no majority of the cluster answers, serving from the local log", "last", log.Last())
		return log, true, nil
	}
	return log, false, errors.New("no majority of the members answers")
}

func (r *replica) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

func (r *replica) takeOffer() *replicated {
	r.mu.Lock()
	defer r.mu.Unlock()
	offer := r.offer
	r.offer = nil
	return offer
}

// checkEnd returns an error if the local log has records that the cluster does not have. last is the newest record of
// the local log. Call checkEnd only when this node has caught up.
func (r *replica) checkEnd(last uint64) error {
	if sequence := r.state.Load().Sequence; last > sequence {
		return fmt.Errorf("this node has %d records, the cluster has %d: %w; keep a copy of the directory and start this node with an empty one",
			last, sequence, ErrDiverged)
	}
	return nil
}

// acceptOffer prepares this node for a snapshot that the leader offers. A new node joins the snapshot's stream. If the
// local log ends before the snapshot, acceptOffer copies another node's log. The leader then sends the snapshot again.
func (c *Cluster) acceptOffer(ctx context.Context, log *wal.Log, offer *replicated) (_ *wal.Log, done bool, err error) {
	self := c.self.Load()
	switch {
	case self.hasStream() && self.Stream != offer.Stream:
		return log, true, fmt.Errorf("the cluster has stream %s, the directory %s belongs to stream %s: start this node with an empty directory",
			offer.Stream, c.config.Dir, self.Stream)
	case !self.hasStream() && log.Last() > 0:
		return log, true, fmt.Errorf("the directory %s has %d records that the cluster does not have: start this node with an empty directory",
			c.config.Dir, log.Last())
	}
	if !self.hasStream() {
		if err := c.saveIdentity(identity{Stream: offer.Stream}); err != nil {
			return log, true, err
		}
	}
	for log.Last() < offer.Sequence {
		if log, err = c.replaceLog(ctx, log); err != nil {
			return log, true, err
		}
	}
	return log, false, errors.New("waiting for the leader's snapshot")
}

// bootstrap creates the stream if this node is the member that has to create it (peerTable.bootstrapMember). Otherwise
// it returns an error.
func (c *Cluster) bootstrap(last uint64) error {
	creator, err := c.peers.bootstrapMember(c.config.Members)
	if err != nil {
		return err
	}
	if creator != c.config.name() {
		return fmt.Errorf("%s is about to create the stream", creator)
	}
	random := make([]byte, 8+codeKeyBytes)
	if _, err := io.ReadFull(c.config.Random, random); err != nil {
		return fmt.Errorf("draw an ID: %w", err)
	}
	id := hex.EncodeToString(random[:8])
	var failed error
	c.replica.do(func() { failed = c.replica.create(id, random[8:], last) })
	if failed != nil {
		return failed
	}
	if err := c.saveIdentity(identity{Stream: id}); err != nil {
		return err
	}
	c.logger.Info("creating the log of the cluster", "stream", id, "after", last)
	return nil
}

func (c *Cluster) saveIdentity(i identity) error {
	i.Raft = c.self.Load().Raft
	if err := writeIdentity(&c.config, i); err != nil {
		return err
	}
	c.self.Store(&i)
	c.sendHeartbeat()
	return nil
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
	c.copiedAt = c.config.Clock()
	c.last.Store(newLog.Last())
	c.sendHeartbeat()
	return newLog, nil
}

// LoginCodeKey returns the secret key with which nodes hash the login codes that users get by e-mail. All nodes have
// the same key, so that a login code of one node is valid on all nodes. The node that creates the cluster draws the
// key. Raft replicates it with the rest of the state, so a node can read it while the other nodes are down.
func (c *Cluster) LoginCodeKey(ctx context.Context) ([]byte, error) {
	for {
		if key := c.replica.state.Load().CodeKey; len(key) == codeKeyBytes {
			return key, nil
		}
		if err := sleep(ctx, joinRetryInterval); err != nil {
			return nil, fmt.Errorf("get the login-code key of the cluster: %w", err)
		}
	}
}
