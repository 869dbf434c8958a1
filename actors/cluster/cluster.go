//go:build !nocluster

package cluster

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/wal"
)

// Cluster is this node's part in the cluster.
type Cluster struct {
	config    Config
	logger    *slog.Logger
	processID [8]byte // drawn at the start; begins the name of every offer
	lockFile  *os.File
	server    *embeddedServer
	peers     *peerTable

	last atomic.Uint64 // newest record of the copy, before there is a journal

	mu      sync.Mutex // guards what changes until Open returns, for those who run meanwhile
	journal *Journal
	self    identity

	health        atomic.Pointer[actors.ClusterHealth]
	trimmedBefore uint64    // the stream begins with it or later; belongs to watch
	leaderSeenAt  time.Time // when there was a majority with a leader last; belongs to watch

	ctx       context.Context // ends with Close
	cancel    context.CancelFunc
	tasks     taskGroup
	closeOnce sync.Once
	closeErr  error
}

// HasBackup starts this node's server and joins: a new node waits until the cluster is there, and one that needs it gets a copy of another
// node's log; ctx bounds that. A node that has a copy waits a few seconds for the others, then goes on: its reads need nobody. Errors that
// no waiting cures say what to do.
func Open(ctx context.Context, config Config) (*Cluster, error) {
	config, err := config.complete()
	if err != nil {
		return nil, err
	}
	if config.Dir, err = filepath.Abs(config.Dir); err != nil {
		return nil, fmt.Errorf("join the cluster: %w", err)
	}
	c := &Cluster{config: config, logger: config.Logger}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.health.Store(&actors.ClusterHealth{Since: config.Clock()})
	if err := c.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("join the cluster %s: %w", config.Cluster, err), c.Close())
	}
	return c, nil
}

// ctx opens the log first: a damaged one is told before anything speaks to other nodes.
func (c *Cluster) open(ctx context.Context) (err error) {
	if _, err := io.ReadFull(c.config.Random, c.processID[:]); err != nil {
		return fmt.Errorf("draw the name of this process: %w", err)
	}
	if c.lockFile, err = lockDir(c.config.Dir); err != nil {
		return err
	}
	if err := install(&c.config); err != nil {
		return err
	}
	if c.self, err = readIdentity(&c.config); err != nil {
		return err
	}
	log, err := wal.Open(c.config.Dir, c.config.Log)
	if err != nil {
		return err
	}
	c.last.Store(log.Last())
	if log, err = c.startNetwork(ctx, log); err == nil {
		var journal *Journal
		if journal, err = newJournal(c, log); err == nil {
			c.setJournal(journal)
			return nil
		}
	}
	return errors.Join(err, log.Close())
}

// startNetwork starts what speaks to the other nodes, and joins them.
func (c *Cluster) startNetwork(ctx context.Context, log *wal.Log) (_ *wal.Log, err error) {
	if c.server, err = startServer(&c.config); err != nil {
		return log, err
	}
	c.peers = newPeerTable(c)
	if err := errors.Join(c.peers.subscribe(), c.serveBackups()); err != nil {
		return log, err
	}
	c.tasks.start(c.watch)
	return c.join(ctx, log)
}

// Journal is what this node's actors write to and follow. Whoever uses it closes it, before Close.
func (c *Cluster) Journal() *Journal { return c.openJournal() }

// openJournal is the journal, nil until the node has joined.
func (c *Cluster) openJournal() *Journal {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.journal
}

// streamID is the number of the stream that this node's copy belongs to, "" when none is known.
func (c *Cluster) streamID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.self.Stream
}

// ClusterHealth is how this node stands with the others; from memory, not older than a second.
func (c *Cluster) Health() actors.ClusterHealth { return *c.health.Load() }

// Certificate is what this node shows to the others, read when it was opened; nil without TLS.
func (c *Cluster) Certificate() *x509.Certificate { return c.server.certificate }

// Close leaves: leadership goes to others first. It waits for everything that HasBackup started. The journal must be closed before.
func (c *Cluster) Close() error {
	c.closeOnce.Do(func() {
		c.cancel()
		c.tasks.wait()
		if c.server != nil {
			c.closeErr = c.server.stop(stopTimeout)
		}
		if c.lockFile != nil {
			c.closeErr = errors.Join(c.closeErr, unlockDir(c.lockFile))
		}
	})
	return c.closeErr
}
