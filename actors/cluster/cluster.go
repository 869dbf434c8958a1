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
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/wal"
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
		return nil, errors.Join(c.joinError(err), c.Close())
	}
	return c, nil
}

func (c *Cluster) joinError(err error) error {
	return fmt.Errorf("join the cluster %s: %w", c.config.Cluster, err)
}

// Join joins the cluster and returns this node's journal, which must be closed before the Cluster. A node without a log
// waits for the cluster until ctx ends, and copies another node's state if needed. A node with a log waits only a few
// seconds (majorityTimeout), because it can serve reads without the other nodes. If waiting cannot help, the error says
// what the operator should do. Join must be called once.
func (c *Cluster) Join(ctx context.Context) (_ *Journal, err error) {
	if err := c.join(ctx); err != nil {
		return nil, c.joinError(err)
	}
	journal, err := newJournal(c, c.log)
	if err != nil {
		return nil, c.joinError(err)
	}
	c.log = nil // closed by the journal
	c.journal.Store(journal)
	c.sendHeartbeat()
	return journal, nil
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
	case self.hasStream() && !raftExists:
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
	if !self.hasStream() { // an interrupted Join has left raft's directory without an identity
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
	if self.hasStream() {
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

const (
	repeatInterval = time.Minute
	repeatedMax    = 256 // number of different messages that limitedLog remembers
)

// limitedLog logs a kind of message once a minute, however often it occurs. Otherwise a node that is down, or programs
// that connect to this node's port, could fill the log. Kinds that differ only in digits, such as ports and numbers of
// connections, count as the same.
type limitedLog struct {
	logger *slog.Logger
	clock  func() time.Time

	mu     sync.Mutex
	logged map[string]time.Time // when each kind was logged last
}

func (l *limitedLog) write(kind string, level slog.Level, message string, attributes ...any) {
	kind = strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return -1
		}
		return r
	}, kind)
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock()
	if at, ok := l.logged[kind]; ok && now.Sub(at) < repeatInterval {
		return
	}
	if l.logged == nil || len(l.logged) >= repeatedMax {
		l.logged = map[string]time.Time{}
	}
	l.logged[kind] = now
	l.logger.Log(context.Background(), level, message, attributes...)
}
