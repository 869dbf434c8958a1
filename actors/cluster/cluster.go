package cluster

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/actors"
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

// Cluster is this node's part of the cluster. The nodes share a log, the stream, whose entries raft replicates. Each
// node copies the records of the stream to its data directory: the local log.
type Cluster struct {
	config    Config
	logger    *slog.Logger
	process   string // random ID of this process
	machine   string // host name and process ID
	lockFile  *os.File
	transport *transport
	peers     *peerTable
	store     *store
	sending   sync.Mutex // held by sendBackup

	serve  atomic.Pointer[func(request []byte) []byte] // answers other nodes; nil until Journal.Serve
	backup atomic.Pointer[func(io.Writer) error]       // writes a backup of this node's state; nil until Journal.Serve
	lost   atomic.Pointer[func(term uint64)]           // called when a term of this leader has ended; nil until Journal.Follow

	replica     *replica      // runs from Join on
	replicaDone chan struct{} // closed when the goroutine of the replica has ended

	log     *wal.Log                 // the local log; used only until Join returns
	last    atomic.Uint64            // sequence of the newest record in the local log
	journal atomic.Pointer[Journal]  // nil until Join returns
	self    atomic.Pointer[identity] // never nil

	copiedAt time.Time // when this process copied another node's state, or zero; not changed after Join

	health       atomic.Pointer[actors.ClusterHealth]
	leaderSeenAt time.Time // when this node most recently saw a majority; used only by watch

	ctx    context.Context // canceled by Close
	cancel context.CancelFunc
	tasks  sync.WaitGroup
}

// Open opens the local log and listens for other nodes. It does not wait for other nodes. The caller must then call
// Join.
func Open(config Config) (*Cluster, error) {
	config, err := config.complete()
	if err != nil {
		return nil, err
	}
	if config.Dir, err = filepath.Abs(config.Dir); err != nil {
		return nil, fmt.Errorf("join the cluster: %w", err)
	}
	config.Logger.Info("joining the cluster "+config.Cluster, "node", config.Node, "address", config.Listen)
	host, _ := os.Hostname() // without a name the process ID has to do
	c := &Cluster{config: config, logger: config.Logger, replicaDone: make(chan struct{}), machine: fmt.Sprintf("%s, pid %d", host, os.Getpid())}
	c.self.Store(new(identity))
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.health.Store(&actors.ClusterHealth{Since: config.Clock()})
	if err := c.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("join the cluster %s: %w", config.Cluster, err), c.Close())
	}
	return c, nil
}

// open opens the local log before it listens, so that a node with a damaged log does not contact other nodes.
func (c *Cluster) open() (err error) {
	var random [16]byte
	if _, err := io.ReadFull(c.config.Random, random[:]); err != nil {
		return fmt.Errorf("draw a process ID: %w", err)
	}
	c.process = hex.EncodeToString(random[:8])
	if c.lockFile, err = lockDir(c.config.Dir); err != nil {
		return err
	}
	if err := install(c.config.Dir); err != nil {
		return err
	}
	self, found, err := readIdentityFile(c.config.Dir)
	if err == nil && found {
		err = self.check(&c.config)
	}
	if err != nil {
		return err
	}
	raftExists, err := wal.Exists(filepath.Join(c.config.Dir, raftDirName))
	switch {
	case err != nil:
		return err
	case self.Stream != "" && !raftExists:
		return earlierVersion(c.config.Dir)
	}
	if c.log, err = wal.Open(c.config.Dir, c.config.Log); err != nil {
		return err
	}
	c.last.Store(c.log.Last())
	options := c.config.Log
	if options.ReserveBytes >= 0 { // a smaller reserve: this node can vote even when its local log is full
		options.ReserveBytes = raftReserveBytes
	}
	if self.Stream == "" { // an interrupted Join has left raft's directory without an identity
		if err := os.RemoveAll(filepath.Join(c.config.Dir, raftDirName)); err != nil {
			return err
		}
	}
	if c.store, err = openStore(c.config.Dir, options, c.config.checkpointEntries); err != nil {
		return err
	}
	if c.store.fresh() { // this directory has never voted, so it may get a new raft ID
		self.Raft = binary.LittleEndian.Uint64(random[8:]) | 1
	}
	if self.Stream != "" {
		if err := writeIdentity(&c.config, self); err != nil {
			return err
		}
	}
	c.self.Store(&self)
	if c.replica, err = newReplica(c, c.store, self.Raft); err != nil {
		return err
	}
	if stream := c.replica.state.Load().Stream; !c.store.fresh() && stream != self.Stream {
		return fmt.Errorf("%s has the log of stream %s, and the directory belongs to stream %s: %w: start this node with an empty directory",
			filepath.Join(c.config.Dir, raftDirName), stream, self.Stream, ErrUnusable)
	}
	c.peers = &peerTable{cluster: c, byName: map[string]heartbeat{}, lost: map[string]bool{}}
	if c.transport, err = listen(c); err != nil {
		return err
	}
	c.transport.start()
	c.start(c.watch)
	return nil
}

// Join joins the cluster and returns this node's journal, which must be closed before the Cluster. A node without a log
// waits for the cluster until ctx ends, and copies another node's state if needed. A node with a log waits only a few
// seconds (majorityTimeout), because it can serve reads without the other nodes. If waiting cannot help, the error says
// what the operator should do. Join must be called once.
func (c *Cluster) Join(ctx context.Context) (_ *Journal, err error) {
	var journal *Journal
	if err = c.join(ctx); err == nil {
		journal, err = newJournal(c, c.log)
	}
	if err != nil {
		return nil, fmt.Errorf("join the cluster %s: %w", c.config.Cluster, err)
	}
	c.log = nil // closed by the journal
	c.journal.Store(journal)
	c.sendHeartbeat()
	return journal, nil
}

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
	r, last, hasStream := c.replica, c.log.Last(), c.self.Load().Stream != ""
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
	case self.Stream != "" && self.Stream != offer.Stream:
		return true, fmt.Errorf("the cluster has stream %s, the directory %s belongs to stream %s: start this node with an empty directory",
			offer.Stream, c.config.Dir, self.Stream)
	case self.Stream == "" && last > 0:
		return true, fmt.Errorf("the directory %s has %d records that the cluster does not have: start this node with an empty directory",
			c.config.Dir, last)
	}
	if self.Stream == "" {
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

const (
	watchInterval = 250 * time.Millisecond
	// reachableWithin is the time after which a node without a heartbeat counts as unreachable. A peer in the raft
	// group of the stream sends four messages a second. After this time without a message the peer counts as
	// unreachable too.
	reachableWithin = 2500 * time.Millisecond
	// While the stream has no leader, the cluster counts as unhealthy, but only after leaderChangeMax. This time is
	// enough for a leadership transfer. It does not hide the loss of the majority, because a follower gives up its
	// leader only a second or more after the newest message of the leader.
	leaderChangeMax = time.Second
)

// This line compiles only if leaderChangeMax is at most reachableWithin.
const _ = uint(reachableWithin - leaderChangeMax)

// watch updates this node's health, sends a heartbeat and checks whether this node must stop (stopOnProblem), every
// watchInterval. On the leader it also applies a new list of members.
func (c *Cluster) watch() {
	r, ticker := c.replica, time.NewTicker(watchInterval)
	defer ticker.Stop()
	for {
		c.updateHealth()
		r.observeFollowers()
		c.sendHeartbeat()
		c.peers.logChanges()
		c.stopOnProblem()
		r.requestReadIndex()
		r.changeMembers()
		r.leaveFullDisk()
		select {
		case <-ticker.C:
		case <-c.ctx.Done():
			return
		}
	}
}

// stopOnProblem makes Follow return an error if this node must stop. There are four reasons: the cluster has removed
// it; most other nodes have accepted another process with its name; its directory is an old copy; or it joined without
// the others and has records that they lack.
func (c *Cluster) stopOnProblem() {
	if c.Journal() == nil {
		return
	}
	err := c.stopCause()
	if accepting, refusing := c.transport.acceptance(); err == nil && refusing > accepting {
		err = c.otherProcessError()
	}
	r, last := c.replica, c.last.Load()
	if err == nil && r.caughtUpSince(c.copiedAt) {
		err = r.checkEnd(last)
	}
	if err != nil {
		r.stop(err)
	}
}

// stopCause returns an error if the cluster has removed this node, or if its directory is an old copy.
func (c *Cluster) stopCause() error {
	for _, h := range c.peers.reachable() {
		if h.Leader && slices.Contains(h.Removed, c.self.Load().Raft) {
			return errors.New("the cluster has removed this node: start it with an empty directory")
		}
	}
	if c.replica.older.Load() {
		return errOlder
	}
	return nil
}

func (c *Cluster) otherProcessError() error {
	return fmt.Errorf("the other nodes have accepted another process as %s, whose machine is in their logs: stop it, or start this node with an "+
		"empty directory and a number of its own", c.config.name())
}

func (c *Cluster) updateHealth() {
	now := c.config.Clock()
	next := actors.ClusterHealth{Since: now, Leader: c.replica.leaderName()}
	next.Majority = next.Leader != "" && c.replica.votersComplete()
	if next.Majority {
		c.leaderSeenAt = now
	}
	next.Majority = next.Majority || maybeTransferring(next.Leader, now.Sub(c.leaderSeenAt))
	if before := c.health.Load(); before.Majority == next.Majority {
		next.Since = before.Since
	}
	c.health.Store(&next)
}

// maybeTransferring reports whether the leader may be missing only because leadership is being transferred. elapsed is
// the time since this node most recently saw a majority.
func maybeTransferring(leader string, elapsed time.Duration) bool {
	return leader == "" && elapsed < leaderChangeMax
}

// StepDown transfers leadership to another member, and waits until this node is no longer the leader. Call it before a
// stop, so that other nodes can go on writing.
func (c *Cluster) StepDown(ctx context.Context) error {
	for c.replica.leads.Load() {
		c.replica.transfer()
		if err := sleep(ctx, joinRetryInterval); err != nil {
			return err
		}
	}
	return nil
}

const (
	leasePollInterval = 100 * time.Millisecond
	// leaseTime is how long a leader may believe that it still leads after a majority has confirmed it. A new leader
	// holds no lease for this time, and two polls more, in which its predecessor notices that its lease has ended.
	leaseTime = 800 * time.Millisecond
)

// Lead calls changed(true) when this node becomes the leader, and changed(false) when another node may lead or ctx
// ends. At most one node holds the lease at a time, because a majority that has elected another leader no longer
// confirms this one. But changed(false) may take a moment, so correctness must not depend on this.
func (c *Cluster) Lead(ctx context.Context, changed func(leads bool)) {
	leads := false
	for sleep(ctx, leasePollInterval) == nil {
		if c.holdsLease() != leads {
			leads = !leads
			changed(leads)
		}
	}
	if leads {
		changed(false)
	}
}

// holdsLease reports whether this node leads, a majority has confirmed that within leaseTime, and no earlier leader can
// still hold the lease. It also asks for the next confirmation.
func (c *Cluster) holdsLease() bool {
	r := c.replica
	if !r.leads.Load() || c.ctx.Err() != nil || !r.votersComplete() || !r.caughtUp() {
		return false
	}
	r.requestReadIndex()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.readIndexAskedAt.Sub(r.ledSince) > leaseTime+2*leasePollInterval && c.config.Clock().Sub(r.readIndexAskedAt) < leaseTime
}

// Journal returns this node's journal, or nil until Join has returned.
func (c *Cluster) Journal() *Journal { return c.journal.Load() }

// Health returns the health of the cluster as this node sees it, and of the disk of its local log. The values are at
// most a second old.
func (c *Cluster) Health() actors.ClusterHealth {
	h := *c.health.Load()
	if j := c.Journal(); j != nil {
		h.DiskFull = j.diskFull.Load() || c.replica.diskFull.Load()
		if since := j.diskSince.Load(); since != nil {
			h.DiskSince = *since
		}
	}
	return h
}

// Close ends the connections and waits for all goroutines of the Cluster. It is called once, after Journal.Close.
func (c *Cluster) Close() (err error) {
	c.cancel()
	if c.transport != nil {
		c.transport.close()
	}
	c.tasks.Wait()
	if c.store != nil {
		err = c.store.close()
	}
	if c.log != nil {
		err = errors.Join(err, c.log.Close())
	}
	if c.lockFile != nil {
		err = errors.Join(err, unlockDir(c.lockFile))
	}
	return err
}

// start runs f in a goroutine that Close waits for. Call it before Close, or in another such goroutine.
func (c *Cluster) start(f func()) { c.tasks.Go(f) }
