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
// lacks, join copies another node's state.
func (c *Cluster) join(ctx context.Context) error {
	c.start(func() {
		defer close(c.replicaDone)
		c.replica.run()
	})
	start, cause := c.config.Clock(), ""
	for {
		waited := c.config.Clock().Sub(start)
		done, err := c.tryJoin(ctx, waited)
		if done {
			return err
		}
		if err != nil && cause != err.Error() {
			cause = err.Error()
			c.logger.Info("waiting for the cluster", "cause", cause)
		}
		if ctxErr := sleep(ctx, joinRetryInterval); ctxErr != nil {
			return fmt.Errorf("%w; the last answer: %s", ctxErr, cause)
		}
	}
}

// tryJoin takes the next step of join. If done is false, err says what the node waits for.
func (c *Cluster) tryJoin(ctx context.Context, waited time.Duration) (done bool, err error) {
	r, last, hasStream := c.replica, c.log.Last(), c.self.Load().hasStream()
	r.mu.Lock()
	err, offer := r.err, r.offer
	r.offer = nil
	r.mu.Unlock()
	if err != nil {
		return true, err
	}
	if _, refusing := c.transport.acceptance(); refusing > 0 {
		return waited > takeoverWait, c.otherProcessError()
	}
	if err := c.stopCause(); err != nil {
		return true, err
	}
	if offer != nil {
		return c.acceptOffer(offer)
	}
	if r.lacksState() {
		err := c.replaceLog(ctx)
		return err != nil, err
	}
	r.requestReadIndex()
	switch {
	case !hasStream:
		return false, c.bootstrap(last)
	case r.caughtUp() && !r.votes() && waited < majorityTimeout:
		return false, errors.New("this node does not vote yet")
	case r.caughtUpSince(c.copiedAt) && (c.Health().Majority || waited > majorityTimeout): // changes need the majority
		return true, r.checkEnd(last)
	case waited > majorityTimeout && last > 0 && r.state.Load().Stream != "": // without state it needs the leader's snapshot
		c.logger.Warn("no majority of the cluster answers, serving from the local log", "last", last)
		return true, nil
	}
	return false, errors.New("no majority of the members answers")
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

// acceptOffer prepares a new node for a snapshot that the leader offers: the node joins the snapshot's stream. The
// leader then sends the snapshot again.
func (c *Cluster) acceptOffer(offer *replicated) (done bool, err error) {
	self, last := c.self.Load(), c.log.Last()
	switch {
	case self.hasStream() && self.Stream != offer.Stream:
		return true, fmt.Errorf("the cluster has stream %s, the directory %s belongs to stream %s: start this node with an empty directory",
			offer.Stream, c.config.Dir, self.Stream)
	case !self.hasStream() && last > 0:
		return true, fmt.Errorf("the directory %s has %d records that the cluster does not have: start this node with an empty directory",
			c.config.Dir, last)
	}
	if !self.hasStream() {
		if err := c.saveIdentity(identity{Stream: offer.Stream}); err != nil {
			return true, err
		}
	}
	return false, errors.New("waiting for the leader's snapshot")
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

// replaceLog replaces this node's log by the state of another node, and opens the new log. The state has all records
// before raft's oldest entry.
func (c *Cluster) replaceLog(ctx context.Context) error {
	if err := c.fetchBackup(ctx, c.replica.base.Load().Sequence); err != nil {
		return fmt.Errorf("copy the state of another node: %w", err)
	}
	if err := c.log.Close(); err != nil {
		return err
	}
	if err := install(c.config.Dir); err != nil {
		return err
	}
	newLog, err := wal.Open(c.config.Dir, c.config.Log)
	if err != nil {
		return err
	}
	c.logger.Info("state copied from another node", "last", newLog.Last())
	c.log, c.copiedAt = newLog, c.config.Clock()
	c.last.Store(newLog.Last())
	c.sendHeartbeat()
	return nil
}

// LoginCodeKey returns the secret key with which nodes hash the login codes that users get by e-mail. All nodes have
// the same key, so that a login code of one node is valid on all nodes. The node that creates the cluster draws the
// key. Raft replicates it with the rest of the state, which a node has when Join has returned.
func (c *Cluster) LoginCodeKey() []byte { return c.replica.state.Load().CodeKey }
