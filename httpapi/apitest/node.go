package apitest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi"
	"github.com/tasard/tasard/httpapi/admin"
	"github.com/tasard/tasard/node/core"
)

// Node is a whole node. Its methods may be called from several goroutines; one control of its Server is used at a time.
type Node struct {
	// URL is where the node answers, without a slash at the end.
	URL string
	// Client reaches the node. In memory every host name leads to it.
	Client *http.Client
	// Clock is the node's time.
	Clock *Clock

	config   *config
	acceptor *acceptor
	inMemory *memoryListener // nil: on a port
	faults   faults
	requests requestLog
	mailer   codeMailer
	random   *lockedRandom
	clients  []*http.Client // of ClientFrom

	mu       sync.Mutex // a button is being pressed
	instance *instance
	accounts map[string]*testAccount // by address
	closed   bool
	closeErr error
}

// instance is the part of a node that a restart replaces.
type instance struct {
	dir    string
	system *actors.System
	server *httpapi.Server
	admin  *admin.Server
}

// Open starts a node. Close ends it.
func Open(options ...Option) (*Node, error) {
	c := newConfig(options)
	seed, err := c.resolve()
	if err != nil {
		return nil, err
	}
	var source [32]byte
	copy(source[:], fmt.Sprintf("tasard apitest %016x", c.randomSeed))
	n := &Node{
		config: c, Clock: newClock(c.at, c.follow), random: &lockedRandom{source: rand.NewChaCha8(source)}, accounts: map[string]*testAccount{},
	}
	if c.follow != nil && (seed != nil || c.state != nil) {
		n.Clock.Set(c.at)
	}
	listener, err := n.listen()
	if err != nil {
		return nil, err
	}
	n.acceptor = newAcceptor(listener)
	if err := n.start(seed); err != nil {
		return nil, errors.Join(err, n.acceptor.close(), n.stopAndRemove())
	}
	return n, nil
}

// listen makes the listener, and the client that reaches it.
func (n *Node) listen() (net.Listener, error) {
	if n.config.address == "" && n.config.listener == nil {
		n.inMemory = newMemoryListener()
		n.URL, n.Client = "http://tasard.test", n.inMemory.client(defaultClientAddr())
		return n.inMemory, nil
	}
	listener, err := n.config.listener, error(nil)
	if listener == nil {
		if listener, err = net.Listen("tcp", n.config.address); err != nil {
			return nil, fmt.Errorf("listen: %w", err)
		}
	}
	n.URL, n.Client = "http://"+listener.Addr().String(), &http.Client{Transport: &http.Transport{}}
	return listener, nil
}

// client reaches the listener as a caller with an address does. A https URL is taken, and means no encryption.
func (m *memoryListener) client(from netip.Addr) *http.Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return m.dial(ctx, from) }
	return &http.Client{Transport: &http.Transport{DialContext: dial, DialTLSContext: dial}}
}

// start gives the node its state and lets callers in.
func (n *Node) start(seed *seed) error {
	var files map[string][]byte
	if n.config.state != nil {
		files = n.config.state.files
	}
	dir, err := newLogDir(files)
	if err != nil {
		return err
	}
	if err := n.openInstance(dir); err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	if n.config.state == nil {
		err = n.publishInitial(seed)
	} else {
		err = n.restoreHarness(n.config.state)
	}
	if err != nil {
		return err
	}
	n.acceptor.resume(n.instance.server)
	return nil
}

// publishInitial publishes what the options say.
func (n *Node) publishInitial(seed *seed) error {
	if n.config.keysRequired {
		if err := n.requireKeys(); err != nil {
			return err
		}
	}
	if seed != nil {
		receipt, err := n.instance.system.Observe(slices.Clone(seed.refreshes))
		if err = errors.Join(err, refusalError(&receipt)); err != nil {
			return fmt.Errorf("seed %s: %w", seed.name, err)
		}
	}
	if len(n.config.rates) > 0 {
		return n.publish(n.config.rates)
	}
	return nil
}

// requireKeys has the notice given and run out.
func (n *Node) requireKeys() error {
	at := n.Clock.Now().Truncate(time.Second)
	n.Clock.Advance(-account.KeyNoticeMin - time.Second)
	_, err := n.instance.system.Announce(at, operator)
	n.Clock.Advance(account.KeyNoticeMin + time.Second)
	if err != nil {
		return fmt.Errorf("require keys: %w", err)
	}
	return nil
}

// openInstance starts a node on a directory: the same that answers everywhere, with another clock and with faults around it.
func (n *Node) openInstance(dir string) error {
	opened, err := core.Open(core.Config{
		Actors: n.systemConfig(dir), Seed: func() uint64 { return n.config.randomSeed }, Mail: admin.MailSMTP, PublicURL: n.URL, Demo: true,
		Random: &lockedRandom{source: rand.NewChaCha8([32]byte{})}, // beside that of keys and codes, which are the same in every version
		HTTP:   httpapi.Config{Harness: &httpapi.Harness{Around: n.middleware}},
	})
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	if err := awaitReady(opened.System); err != nil {
		return err
	}
	n.instance = &instance{dir, opened.System, opened.Server, opened.Admin}
	return nil
}

// Admin is the operator's side of the node: what tasard admin asks over a socket.
func (n *Node) Admin() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.mu.Lock()
		life := n.instance
		n.mu.Unlock()
		if life == nil {
			http.Error(w, errClosed.Error(), http.StatusServiceUnavailable)
			return
		}
		life.admin.Handler().ServeHTTP(w, r)
	})
}

// Small tables: a node in a test has few callers, and a hundred of them may run side by side.
const (
	anonymousMax  = 256
	accountShards = 2
)

// diskReserveOff lets a node in a test fill the disk.
const diskReserveOff = -1

// systemConfig is how the actors run on a directory.
func (n *Node) systemConfig(dir string) actors.Config {
	return actors.Config{
		Dir: dir, Clock: n.Clock.Now, Catalogue: n.config.catalogue, Rules: n.config.rules, Logger: n.config.logger,
		Terms: account.QuotaPolicy{DefaultQuota: n.config.quota}, LimitsOff: !n.config.limits, KeyPrefix: account.KeyPrefixTest,
		Random: n.random, Mailer: &n.mailer, AnonymousClientsMax: anonymousMax, AccountShards: accountShards,
		Log: actors.LogConfig{ReserveBytes: diskReserveOff},
	}
}

// openSystem starts the actors and waits until their log is replayed.
func openSystem(c *actors.Config) (*actors.System, error) {
	system, err := actors.Open(*c)
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	return system, awaitReady(system)
}

// awaitReady waits until the log is replayed; a system that ends instead is closed.
func awaitReady(system *actors.System) error {
	select {
	case <-system.Ready():
		return nil
	case <-system.Done():
		return errors.Join(fmt.Errorf("start: %w", system.Err()), system.Close())
	}
}

// Close ends the node and holds its log against what it knew: the error says where they differ. Nothing is left behind.
// Closing again returns the same.
func (n *Node) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return n.closeErr
	}
	n.closed = true
	for _, client := range append(n.clients, n.Client) {
		client.CloseIdleConnections()
	}
	err := n.acceptor.close()
	if n.instance != nil {
		err = errors.Join(err, n.checkLog())
	}
	n.closeErr = errors.Join(err, n.stopAndRemove())
	return n.closeErr
}

// stopAndRemove stops the system and removes its log.
func (n *Node) stopAndRemove() error {
	if n.instance == nil {
		return nil
	}
	err := errors.Join(n.instance.system.Close(), os.RemoveAll(n.instance.dir))
	n.instance = nil
	return err
}

// errClosed is what a control of a node that has ended says.
var errClosed = errors.New("the node is closed")

// lockedRandom is chance with a seed, for several goroutines.
type lockedRandom struct {
	mu     sync.Mutex
	source *rand.ChaCha8
}

// state is where it stands; from there it goes on the same way.
func (r *lockedRandom) state() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	place, _ := r.source.MarshalBinary() // it has no error
	return place
}

func (r *lockedRandom) setState(place []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.source.UnmarshalBinary(place)
}

// Read is io.Reader.
func (r *lockedRandom) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.source.Read(p)
}
