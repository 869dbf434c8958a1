//go:build !nocluster

package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
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

// Cluster is this node's part of the cluster. The nodes share a log, which is a JetStream stream. Each node also has a
// copy of the stream in its data directory: the local log.
type Cluster struct {
	config    Config
	logger    *slog.Logger
	processID [8]byte // random; the first half of each proposalID
	process   string  // processID in hexadecimal digits
	machine   string  // host name and process ID
	previous  string  // Cluster.process of the process that used the data directory before this one; "" = unknown
	lockFile  *os.File
	server    *embeddedServer
	peers     *peerTable

	log     *wal.Log                 // the local log; used only until Join returns
	last    atomic.Uint64            // sequence of the newest record in the local log; used only while journal is nil
	journal atomic.Pointer[Journal]  // nil until Join returns
	self    atomic.Pointer[identity] // never nil

	health        atomic.Pointer[actors.ClusterHealth]
	trimmedBefore uint64    // trim has removed all records before this sequence from the stream; used only by watch
	leaderSeenAt  time.Time // when this node most recently saw a majority; used only by watch

	ctx       context.Context // canceled by Close
	cancel    context.CancelFunc
	tasks     taskGroup
	closeOnce sync.Once
	closeErr  error
}

// Open opens the local log and starts this node's server. It does not wait for other nodes. The caller must then call
// Join.
func Open(config Config) (*Cluster, error) {
	config, err := config.complete()
	if err != nil {
		return nil, err
	}
	if config.Dir, err = filepath.Abs(config.Dir); err != nil {
		return nil, fmt.Errorf("join the cluster: %w", err)
	}
	host, _ := os.Hostname() // without a name the process ID has to do
	c := &Cluster{config: config, logger: config.Logger, machine: fmt.Sprintf("%s, pid %d", host, os.Getpid())}
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
// waits for the cluster until ctx ends, and copies another node's log if necessary. A node with a log waits only a few
// seconds (majorityTimeout), because it can serve reads without the other nodes. If waiting cannot help, the error says
// what the operator should do. Join must be called once.
func (c *Cluster) Join(ctx context.Context) (_ *Journal, err error) {
	if c.log, err = c.join(ctx, c.log); err != nil {
		return nil, c.joinError(err)
	}
	journal, err := newJournal(c, c.log)
	if err != nil {
		return nil, c.joinError(err)
	}
	c.log = nil // closed by the journal
	c.setJournal(journal)
	return journal, nil
}

// open opens the local log before it starts the server. So a node with a damaged log does not contact other nodes.
func (c *Cluster) open() (err error) {
	if _, err := io.ReadFull(c.config.Random, c.processID[:]); err != nil {
		return fmt.Errorf("draw a process ID: %w", err)
	}
	if c.lockFile, err = lockDir(c.config.Dir); err != nil {
		return err
	}
	if err := install(c.config.Dir); err != nil {
		return err
	}
	self, err := readIdentity(&c.config)
	if err != nil {
		return err
	}
	c.process, c.previous = hex.EncodeToString(c.processID[:]), self.Process
	self.Process = c.process
	if self.hasStream() {
		err = writeIdentity(&c.config, self)
	}
	if err != nil {
		return err
	}
	c.self.Store(&self)
	if c.log, err = wal.Open(c.config.Dir, c.config.Log); err != nil {
		return err
	}
	c.last.Store(c.log.Last())
	return c.startNetwork()
}

// startNetwork starts the server, the heartbeats and the service that sends this log to other nodes.
func (c *Cluster) startNetwork() (err error) {
	if c.server, err = startServer(&c.config); err != nil {
		return err
	}
	c.peers = newPeerTable(c)
	if err := errors.Join(c.peers.subscribe(), c.serveLogs()); err != nil {
		return err
	}
	c.tasks.start(c.watch)
	c.tasks.start(c.watchRoutes)
	return nil
}

// Journal returns this node's journal, or nil until Join has returned.
func (c *Cluster) Journal() *Journal { return c.journal.Load() }

// Health returns the health of the cluster as this node sees it, and of the disk of its local log. The result is at
// most a second old.
func (c *Cluster) Health() actors.ClusterHealth {
	h := *c.health.Load()
	if j := c.Journal(); j != nil {
		h.DiskFull = j.diskFull.Load()
		if since := j.diskSince.Load(); since != nil {
			h.DiskSince = *since
		}
	}
	return h
}

// Certificate returns the certificate that this node presents to other nodes, or nil without TLS.
func (c *Cluster) Certificate() *x509.Certificate { return c.server.certificate.Load() }

// SetTLS changes the certificate of this node and the authority of the cluster, as TLS.Load returns them. Only new
// connections use them.
func (c *Cluster) SetTLS(tlsConfig *tls.Config) error { return c.server.setTLS(&c.config, tlsConfig) }

// Close transfers the leadership of the JetStream stream, stops the server, and waits for all goroutines of the
// Cluster. Journal.Close must be called first.
func (c *Cluster) Close() error {
	c.closeOnce.Do(func() {
		c.cancel()
		c.tasks.wait()
		if c.peers != nil && !c.config.selfIsMember() {
			c.publishHeartbeat(true)
			_ = c.server.conn.FlushTimeout(requestTimeout) // without it the operator has to call Forget
		}
		if c.server != nil {
			c.closeErr = c.server.stop(stopTimeout)
		}
		if c.log != nil {
			c.closeErr = errors.Join(c.closeErr, c.log.Close())
		}
		if c.lockFile != nil {
			c.closeErr = errors.Join(c.closeErr, unlockDir(c.lockFile))
		}
	})
	return c.closeErr
}
