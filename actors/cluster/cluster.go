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
	config  Config
	logger  *slog.Logger
	process [8]byte // drawn at the start; begins the name of every offer
	held    *os.File
	node    *embedded
	reports *reports

	last atomic.Uint64 // newest record of the copy, before there is a journal

	mu      sync.Mutex // guards what changes until Open returns, for those who run meanwhile
	journal *Journal
	self    identity

	standing atomic.Pointer[actors.Standing]
	trimmed  uint64    // the stream begins with it or later; belongs to watch
	led      time.Time // when there was a majority with a leader last; belongs to watch

	life   context.Context // ends with Close
	end    context.CancelFunc
	crew   crew
	once   sync.Once
	closed error
}

// Open starts this node's server and joins: a new node waits until the cluster is there, and one that needs it gets a copy of another
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
	c.life, c.end = context.WithCancel(context.Background())
	c.standing.Store(&actors.Standing{Since: config.Clock()})
	if err := c.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("join the cluster %s: %w", config.Cluster, err), c.Close())
	}
	return c, nil
}

// open opens the log first: a damaged one is told before anything speaks to other nodes.
func (c *Cluster) open(ctx context.Context) (err error) {
	if _, err := io.ReadFull(c.config.Random, c.process[:]); err != nil {
		return fmt.Errorf("draw the name of this process: %w", err)
	}
	if c.held, err = hold(c.config.Dir); err != nil {
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
	if log, err = c.enter(ctx, log); err == nil {
		var journal *Journal
		if journal, err = newJournal(c, log); err == nil {
			c.publish(journal)
			return nil
		}
	}
	return errors.Join(err, log.Close())
}

// enter starts what speaks to the other nodes, and joins them.
func (c *Cluster) enter(ctx context.Context, log *wal.Log) (_ *wal.Log, err error) {
	if c.node, err = startServer(&c.config); err != nil {
		return log, err
	}
	c.reports = newReports(c)
	if err := errors.Join(c.reports.listen(), c.giveCopies()); err != nil {
		return log, err
	}
	c.crew.start(c.watch)
	return c.join(ctx, log)
}

// Journal is what this node's actors write to and follow. Whoever uses it closes it, before Close.
func (c *Cluster) Journal() *Journal { return c.opened() }

// opened is the journal, nil until the node has joined.
func (c *Cluster) opened() *Journal {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.journal
}

// stream is the number of the stream that this node's copy belongs to, "" when none is known.
func (c *Cluster) stream() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.self.Stream
}

// Standing is how this node stands with the others; from memory, not older than a second.
func (c *Cluster) Standing() actors.Standing { return *c.standing.Load() }

// Certificate is what this node shows to the others, read when it was opened; nil without TLS.
func (c *Cluster) Certificate() *x509.Certificate { return c.node.certificate }

// Close leaves: leadership goes to others first. It waits for everything that Open started. The journal must be closed before.
func (c *Cluster) Close() error {
	c.once.Do(func() {
		c.end()
		c.crew.wait()
		if c.node != nil {
			c.closed = c.node.stop(stopWait)
		}
		if c.held != nil {
			c.closed = errors.Join(c.closed, release(c.held))
		}
	})
	return c.closed
}
