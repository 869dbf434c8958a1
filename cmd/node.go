package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi"
	"github.com/tasard/tasard/wal"
)

// shutdownMax is how long requests in flight may take at the end; the server's own limit for a request is shorter.
const shutdownMax = 15 * time.Second

// nodeOptions say which data a command works on.
type nodeOptions struct {
	data      string
	catalogue string // file that extends the built-in one, "" = none
	sources   string // directory of definitions that extend the built-in ones, "" = none
}

// known is what is known without any observation: institutions, currencies, and where rates come from.
type known struct {
	catalogue *engine.Catalogue
	set       *source.Set
}

// addData declares --data.
func addData(cmd *cobra.Command, data *string) {
	cmd.Flags().Var(pathValue(data, "DIR"), "data", "work on the data directory `DIR`")
}

// addNode declares the flags of nodeOptions.
func addNode(cmd *cobra.Command, o *nodeOptions) {
	addData(cmd, &o.data)
	addCatalogue(cmd, &o.catalogue)
	addSources(cmd, &o.sources)
}

// addCatalogue declares --catalogue.
func addCatalogue(cmd *cobra.Command, file *string) {
	cmd.Flags().Var(pathValue(file, "FILE"), "catalogue", "add institutions, currencies and sources of a JSON `FILE` to the built-in ones")
}

// addLog declares the flags of logOptions, with what o holds as defaults.
func addLog(cmd *cobra.Command, o *logOptions) {
	cmd.Flags().Var(wordValue(&o.format, "auto", "text", "json"), "log-format", "log as text or as JSON; auto is text on a terminal")
	cmd.Flags().Var(wordValue(&o.level, "debug", "info", "warn", "error"), "log-level", "log this and what is worse")
}

// node is a system that runs on a data directory.
type node struct {
	system    *actors.System
	catalogue *engine.Catalogue
}

// startNode opens the data directory; the system replays its log from here on (Ready).
func (p *process) startNode(o nodeOptions, catalogue *engine.Catalogue, log *slog.Logger) (*node, error) {
	return p.startNodeWith(actors.Config{Dir: o.data, Catalogue: catalogue, Logger: log})
}

// startNodeWith is startNode for one that admits callers as well.
func (p *process) startNodeWith(c actors.Config) (*node, error) {
	c.Rules, c.Clock, c.Random = engine.DefaultRules(), p.clock, p.random
	system, err := actors.Open(c)
	if err != nil {
		return nil, directoryError(c.Dir, err)
	}
	return &node{system, c.Catalogue}, nil
}

// directoryError gives an error of opening a data directory its exit code.
func directoryError(directory string, err error) error {
	switch {
	case errors.Is(err, wal.ErrLocked):
		return fail(exitBusy, "%s: a running node holds the directory; stop it, or let it take a file in: tasard serve --import FILE", directory)
	case (cannotWrite(err) || errors.Is(err, fs.ErrNotExist)) && !errors.Is(err, wal.ErrNoSpace): // /proc says there is no such file
		return fail(exitCannotWrite, "the data directory can't be created or written: %w; name another one with --data", err)
	}
	return logError(directory, err)
}

// openNode opens the data directory and waits until its log is replayed.
func (p *process) openNode(ctx context.Context, o nodeOptions, log *slog.Logger) (*node, error) {
	known, err := openKnown(o)
	if err != nil {
		return nil, err
	}
	node, err := p.startNode(o, known.catalogue, log)
	if err != nil {
		return nil, err
	}
	select {
	case <-node.system.Ready():
		return node, nil
	case <-node.system.Done():
		err = node.failure(nil)
	case <-ctx.Done():
		err = fail(exitInterrupted, "interrupted while the log was replayed")
	}
	return nil, errors.Join(err, node.close())
}

// failure is why the system stopped by itself, or err when it did not.
func (n *node) failure(err error) error {
	cause := n.system.Err()
	if cause == nil {
		return err
	}
	if exitCode(cause) == exitBadData {
		return logError("", cause)
	}
	return fail(exitFailStop, "stopped, because going on could lose data: %w; start it again", cause)
}

// close stops the system in order: what was accepted is on disk when it returns.
func (n *node) close() error {
	if err := n.system.Close(); err != nil {
		return fmt.Errorf("close the data directory: %w", err)
	}
	return nil
}

// rates is how many rates are published.
func (n *node) rates() int {
	page, err := n.system.Rates(engine.RatesQuery{Cut: engine.Cut{Limit: 1}})
	if err != nil {
		return 0 // nothing was ever published
	}
	return page.Total
}

// states are the books of all currencies at one moment.
func (n *node) states(ctx context.Context) ([]engine.BookState, error) {
	var states []engine.BookState
	err := n.system.Export(ctx, func(state engine.BookState) error {
		states = append(states, state)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the state: %w", err)
	}
	return states, nil
}

// openKnown is what the program knows, with what the operator's files add.
func openKnown(o nodeOptions) (known, error) {
	set, err := openSet(o.sources)
	if err != nil {
		return known{}, err
	}
	catalogue, err := openCatalogue(o.catalogue)
	if err != nil {
		return known{}, err
	}
	if catalogue, err = withSources(catalogue, set); err != nil {
		return known{}, err
	}
	return known{catalogue, set}, nil
}

// openCatalogue is the built-in catalogue, extended by a file if there is one.
func openCatalogue(path string) (*engine.Catalogue, error) {
	if path == "" {
		return engine.DefaultCatalogue(), nil
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fail(exitBadData, "%s: there is no such catalogue file", path)
	}
	if err != nil {
		return nil, fail(exitBadData, "read catalogue: %w", err)
	}
	catalogue, err := engine.DefaultCatalogue().Extend(file, path)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fail(exitBadData, "%w", err)
	}
	return catalogue, nil
}

// frontOptions say how the node answers over HTTP.
type frontOptions struct {
	listen            string
	strict            bool
	corsAuthorization bool
	feeNotice         string
	proxies           []netip.Prefix
	accountURL        string
	mail              string
	allowance         engine.Allowance
	publicURL         string // "" = not known
	demo              bool   // every rate is made up
	conns             int    // at once; 0 = what the server takes by itself
	connsPerAddress   int    // 0 = any number
	tls               tlsOptions
	drainDelay        time.Duration // between the first word that the node stops and the end of accepting
	access            string        // which answers are logged
	metrics           string        // address of the listener for Prometheus, "" = none
}

// connsDefault and connsPerAddressDefault are for a node that anybody may reach.
const (
	connsDefault           = 16384
	connsPerAddressDefault = 128
	connsLimit             = 1_000_000
	// descriptorsKept are for the log, the collectors, mail, the operator, and newcomers at the cap.
	descriptorsKept = 256
)

// addConnections declares the flags that bound connections.
func addConnections(cmd *cobra.Command, o *frontOptions) {
	flags := cmd.Flags()
	flags.Var(countValue(&o.conns, 1, connsLimit), "connections", "connections at once, each of which takes about 30 KiB; newcomers beyond get 503")
	flags.Var(countValue(&o.connsPerAddress, 0, connsLimit), "connections-per-address",
		"of them for one client address (IPv6: /64), at most a fifth of all; trusted proxies are exempt; 0 is any number")
}

// limits are the connections that the server takes: no more than there are descriptors for.
func (o *frontOptions) limits(log *slog.Logger) httpapi.Limits {
	l := httpapi.Limits{ConnsMax: o.conns, ConnsPerAddress: cmp.Or(o.connsPerAddress, -1)}
	if room := descriptorsMax() - descriptorsKept; room < cmp.Or(l.ConnsMax, connsDefault) {
		l.ConnsMax = max(1, room)
		log.Warn("the limit of open files leaves room for fewer connections; raise it, or lower --connections", "connections", l.ConnsMax)
	}
	return l
}

// front is the HTTP side of a node.
type front struct {
	server *httpapi.Server
	url    string
	ended  chan struct{} // closed when the server has ended
	err    error         // why, nil after stop; to be read when ended is closed
}

// listen opens the address of the node.
func listen(address string) (net.Listener, error) { return listenFor(address, "--listen") }

// listenFor opens the address that a flag names; the errors say what the operator can do. It is plain TCP: a listener of multipath TCP
// can't be made deaf before it is closed, and would cut off who is just coming.
func listenFor(address, flag string) (net.Listener, error) {
	var config net.ListenConfig
	config.SetMultipathTCP(false)
	listener, err := config.Listen(context.Background(), "tcp", address)
	switch {
	case err == nil:
		return listener, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, &failure{exitBusy, fmt.Errorf("listen on %s: another program listens there; stop it or choose another address with %s: %w",
			address, flag, syscall.EADDRINUSE)}
	case errors.Is(err, fs.ErrPermission):
		return nil, fail(exitBadData, "listen on %s: not allowed; choose a port from 1024 up with %s", address, flag)
	}
	return nil, fail(exitBadData, "listen on %s: choose an address of this machine with %s: %w", address, flag, err)
}

// answering says what a node answers, whoever listens.
func (p *process) answering(n *node, o *frontOptions, log *slog.Logger) httpapi.Config {
	return httpapi.Config{
		Service: n.system, Catalogue: n.catalogue, Clock: p.clock, RequestID: httpapi.RequestIDs(p.seed()),
		Gate: n.system, Accounts: n.system, Proxies: o.proxies, DeprecationLink: o.accountURL, SunsetLink: o.accountURL,
		FeeNotice: o.feeNotice, AllowUnknownParameters: !o.strict, AllowAuthorizationHeader: o.corsAuthorization, Logger: log,
	}
}

// startFront answers what the listener accepts, at once: 503 until the node is ready. stop waits for its goroutine.
func (p *process) startFront(n *node, listener net.Listener, o frontOptions, c *certificate, health engine.Health, log *slog.Logger) *front {
	url := c.scheme() + listener.Addr().String()
	if o.demo {
		o.publicURL = url
	}
	config := p.answering(n, &o, log)
	config.Health, config.Site, config.Limits, config.Certificate = health, p.newSite(n, o, log), o.limits(log), c.certify()
	config.Access, config.AccessFrom = accessLog(p.stderr, o.access)
	f := &front{server: httpapi.New(config), url: url, ended: make(chan struct{})}
	go func() {
		defer close(f.ended)
		f.err = f.server.Serve(listener)
	}()
	return f
}

// stop lets requests in flight finish and waits for the server's end.
func (f *front) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownMax)
	defer cancel()
	if err := f.server.Shutdown(ctx); err != nil {
		return fail(exitFailStop, "stop answering: %w", err)
	}
	<-f.ended
	return nil
}
