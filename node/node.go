package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/admin"
	"github.com/tasard/tasard/node/core"
	"github.com/tasard/tasard/node/metrics"
	"github.com/tasard/tasard/wal"
)

// Node is a running node.
type Node struct {
	config    Config // with defaults
	reference ReferenceData

	core        *core.Core
	system      *actors.System // of the core
	cluster     membership     // nil: not in a cluster
	mailer      *codeMailer
	collector   *liveCollector
	certificate *certificate // nil: plain HTTP
	metrics     http.Handler
	server      *httpServer

	runContext context.Context // ends with Close
	cancel     context.CancelFunc
	background sync.WaitGroup // run and collectWithLease

	ready    chan struct{}
	done     chan struct{}
	doneOnce sync.Once // closes done
	err      error     // valid when done is closed

	closeOnce sync.Once
	closeErr  error // result of Close
}

// Open opens the parts of a node in this order: certificate, listeners, mail, cluster, actors with their log,
// management, collectors. It first checks everything that does not need the data directory. It returns while the log
// is still being read; requests get 503 until Ready. ctx applies only to opening; Close stops the node. The error is
// an *Error, an error of the log, or several errors joined.
func Open(ctx context.Context, c Config) (*Node, error) {
	n := &Node{config: c.withDefaults(), ready: make(chan struct{}), done: make(chan struct{})}
	var opened closers
	if err := n.open(ctx, &opened); err != nil {
		return nil, errors.Join(err, opened.close())
	}
	n.runContext, n.cancel = context.WithCancel(context.Background())
	n.background.Go(func() { n.run(n.runContext) })
	return n, nil
}

// closers holds the close functions of opened parts. close calls them, newest first.
type closers []func() error

func (c *closers) add(closeFunc func() error) { *c = append(*c, closeFunc) }

func (c *closers) close() error {
	var problems []error
	for i := len(*c) - 1; i >= 0; i-- {
		problems = append(problems, (*c)[i]())
	}
	return errors.Join(problems...)
}

func (n *Node) open(ctx context.Context, opened *closers) (err error) {
	c := &n.config
	listener := c.HTTP.Listener
	if listener != nil {
		opened.add(listener.Close)
	}
	if c.Dir == "" {
		return errNoDir
	}
	if err := c.Cluster.check(c); err != nil {
		return err
	}
	if n.reference, err = c.reference(); err != nil {
		return err
	}
	if n.certificate, err = loadCertificate(c.HTTP.TLS, c.Credentials); err != nil {
		return err
	}
	n.certificate.warn(c.Logger, c.Clock())
	if listener == nil {
		if listener, err = Listen(c.HTTP.Listen, "HTTP.Listen"); err != nil {
			return err
		}
		opened.add(listener.Close)
	}
	var metricsListener net.Listener
	if c.Admin.Metrics != "" {
		if metricsListener, err = Listen(c.Admin.Metrics, "Admin.Metrics"); err != nil {
			return err
		}
		opened.add(metricsListener.Close)
	}
	if n.mailer, err = openMailer(c); err != nil {
		return err
	}
	opened.add(func() error { n.mailer.close(ctx); return nil })
	if err := n.openCore(ctx, opened, listener); err != nil {
		return err
	}
	socket, err := n.openSocket(ctx)
	if err != nil {
		return err
	}
	n.startServer(listener)
	if socket != nil {
		n.core.Admin.ServeSocket(socket)
	}
	if metricsListener != nil {
		n.core.Admin.ServeMetrics(metricsListener)
	}
	return nil
}

// reference returns the configured reference data, or reads its files.
func (c *Config) reference() (ReferenceData, error) {
	if c.Reference != nil {
		return *c.Reference, nil
	}
	return LoadReferenceData(c.Catalogue, c.Definitions)
}

// openCore joins the cluster, if there is one, and opens the core.
func (n *Node) openCore(ctx context.Context, opened *closers, listener net.Listener) (err error) {
	c := &n.config
	if err := c.Cluster.leave(c); err != nil {
		return err
	}
	coreConfig := c.core(n.reference, n.mailer.sender)
	if n.cluster, err = joinCluster(ctx, c, &coreConfig.Actors); err != nil {
		return err
	}
	opened.add(func() error { return leaveCluster(n.cluster) })
	if c.HTTP.Demo {
		coreConfig.PublicURL = n.certificate.scheme() + listener.Addr().String()
	}
	coreConfig.HTTP.Limits, coreConfig.HTTP.Certificate = c.HTTP.limits(), n.certificate.certificateFunc()
	coreConfig.Conditions = func() []engine.Condition { return []engine.Condition{n.mailer.condition(), n.collector.condition()} }
	coreConfig.Readiness, coreConfig.Sources = n.completeReadiness, func() admin.Sources { return n.collector.describe() }
	if n.cluster != nil {
		coreConfig.Cluster = n.describeCluster
	}
	coreConfig.Metrics = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { n.metrics.ServeHTTP(w, r) })
	if n.core, err = core.Open(coreConfig); err != nil {
		return directoryError(c.Dir, err)
	}
	n.system = n.core.System
	opened.add(func() error { return closeSystem(n.system) })
	n.collector = newLiveCollector(c, n.system, n.reference.Sources)
	n.metrics = n.metricsHandler()
	return nil
}

// closeSystem stops the system. Accepted changes are on disk when it returns.
func closeSystem(system *actors.System) error {
	if err := system.Close(); err != nil {
		return fmt.Errorf("close the data directory: %w", err)
	}
	return nil
}

// openSocket creates the management socket. It returns nil if management is off.
func (n *Node) openSocket(ctx context.Context) (net.Listener, error) {
	if n.config.Admin.Off {
		return nil, nil
	}
	socket, err := admin.Listen(ctx, n.config.Admin.Socket)
	switch {
	case err == nil:
		return socket, nil
	case errors.Is(err, admin.ErrInUse):
		return nil, &Error{Busy, "Admin.Socket", err}
	case errors.Is(err, admin.ErrSocketPath):
		return nil, &Error{BadFile, "Admin.Socket", err}
	}
	return nil, errorf(Unwritable, "Admin.Socket", "%w; choose another place", err)
}

// metricsHandler returns the handler for Prometheus.
func (n *Node) metricsHandler() http.Handler {
	config := metrics.Config{
		Version: n.config.Version, System: n.system, Server: n.core.Server, Health: n.core.Server.Conditions, Sources: n.SourceHealth,
		Certificates: n.certificate.forMetrics(),
	}
	if n.mailer.smtp != nil {
		config.Mail = n.mailer.smtp.Stats
	}
	if n.cluster != nil {
		config.Cluster = n.cluster.Status
		if cert := n.cluster.Certificate(); cert != nil {
			config.Certificates = append(config.Certificates, metrics.Certificate{Peer: metrics.PeerNodes, ExpiresAt: func() time.Time { return cert.NotAfter }})
		}
	}
	return metrics.Handler(config)
}

// run waits until the log has been read, starts collecting, and waits until the node ends.
func (n *Node) run(ctx context.Context) {
	select {
	case <-n.system.Ready():
		if err := n.checkData(); err != nil {
			n.stopWith(err)
			return
		}
		close(n.ready)
		if !n.config.Collect.Deferred {
			n.Collect()
		}
	case <-n.system.Done():
	case <-n.server.done:
	case <-ctx.Done():
		return
	}
	select {
	case <-n.system.Done():
		n.stopWith(StopCause(n.system))
	case <-n.server.done:
		n.stopWith(errorf(Failed, "", "the listener ended: %w", n.server.err))
	case <-ctx.Done():
	}
}

// stopWith records why the node ended by itself.
func (n *Node) stopWith(err error) {
	n.doneOnce.Do(func() {
		n.err = err
		close(n.done)
	})
}

// StopCause returns the error that stopped a system, or nil if it runs or was closed.
func StopCause(system *actors.System) error {
	err := system.Err()
	var damageErr *wal.DamageError
	var formatErr *wal.FormatError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &damageErr), errors.As(err, &formatErr), errors.Is(err, actors.ErrUnknownRecord):
		return logError(err)
	}
	return errorf(Failed, "", "stopped, because going on could lose data: %w; start the node again", err)
}

// checkData returns an error if this node may not serve the data in its directory.
func (n *Node) checkData() error {
	if policy := n.system.KeyPolicy(); n.config.Mail.method() == admin.MailLog && !policy.RequiredAt.IsZero() {
		return errorf(BadFile, "Mail.Method", "keys are announced for %s, and %s", formatInstant(policy.RequiredAt), admin.UnsafeMail)
	}
	return n.refuseDemoData()
}

// DemoPrefix is the prefix of the ids of simulated sources.
const DemoPrefix = "demo-"

// refuseDemoData returns an error if the directory holds made-up rates of a demo, which must not be served as real
// ones.
func (n *Node) refuseDemoData() error {
	page, err := n.system.Rates(engine.RatesQuery{PageRequest: engine.PageRequest{Limit: n.Rates()}})
	if err != nil {
		return nil //nolint:nilerr // there are no rates yet
	}
	for _, rate := range page.Items {
		if strings.HasPrefix(rate.SourceID, DemoPrefix) && !n.reference.Catalogue.HasSource(rate.SourceID) {
			return errorf(BadFile, "", "the data directory holds made-up rates of %s, from a demo; use another directory", rate.SourceID)
		}
	}
	return nil
}

// Collect starts collecting. In a cluster the node collects only while it holds the lease. A caller that has set
// Collect.Deferred calls it once, when the node is ready; otherwise the node calls it.
func (n *Node) Collect() {
	if n.cluster == nil {
		n.collector.start(n.runContext)
		return
	}
	n.collector.setActive(false)
	n.collector.start(n.runContext)
	n.background.Go(func() { n.collectWithLease(n.runContext) })
}

// URL returns the address of the node without a trailing slash.
func (n *Node) URL() string { return n.server.url }

// System returns the node's API in memory: an engine.Service, account.Service, account.Operator and engine.Intake.
func (n *Node) System() *actors.System { return n.system }

// Catalogue returns the node's institutions, currencies and sources.
func (n *Node) Catalogue() *engine.Catalogue { return n.reference.Catalogue }

// Socket returns the path of the management socket.
func (n *Node) Socket() string { return n.config.Admin.Socket }

// Ready returns a channel that is closed when the log has been read and data requests are answered.
func (n *Node) Ready() <-chan struct{} { return n.ready }

// Done returns a channel that is closed when the node has ended by itself; Err returns the reason. Close must still be
// called.
func (n *Node) Done() <-chan struct{} { return n.done }

// Err returns why the node ended by itself, nil while it runs.
func (n *Node) Err() error {
	select {
	case <-n.done:
		return n.err
	default:
		return nil
	}
}

// Rates returns the number of published rates.
func (n *Node) Rates() int {
	page, err := n.system.Rates(engine.RatesQuery{PageRequest: engine.PageRequest{Limit: 1}})
	if err != nil {
		return 0 // there are no rates yet
	}
	return page.Total
}

// Close stops the node. With HTTP.DrainDelay it first keeps answering for that time. It then stops collecting, waits
// for requests in flight, stops management and the system, and sends queued e-mails. Accepted changes are on disk when
// it returns. Further calls return the same error.
func (n *Node) Close(ctx context.Context) error {
	n.closeOnce.Do(func() { n.closeErr = n.close(ctx) })
	return n.closeErr
}

func (n *Node) close(ctx context.Context) error {
	n.cancel()
	n.background.Wait()
	n.server.server.Drain()
	n.waitDrainDelay()
	n.collector.stop()
	n.transferLeadership(ctx)
	err := errors.Join(n.server.stop(ctx), n.core.Admin.Stop(ctx), closeSystem(n.system), leaveCluster(n.cluster))
	n.mailer.close(ctx)
	return err
}

// waitDrainDelay waits for HTTP.DrainDelay, or until the node has stopped by itself.
func (n *Node) waitDrainDelay() {
	if n.config.HTTP.DrainDelay == 0 {
		return
	}
	timer := time.NewTimer(n.config.HTTP.DrainDelay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-n.system.Done():
	case <-n.server.done:
	}
}

// Data is the opened data directory of a node that does not listen.
type Data struct {
	System *actors.System
	ReferenceData
}

// OpenData opens the data directory without listening, and waits until its log has been read. It uses only the
// fields of Config for data and reference data. A program that makes changes calls CheckSingle before.
func OpenData(ctx context.Context, c Config) (*Data, error) {
	c = c.withDefaults()
	if c.Dir == "" {
		return nil, errNoDir
	}
	reference, err := c.reference()
	if err != nil {
		return nil, err
	}
	system, err := actors.Open(c.core(reference, nil).Actors)
	if err != nil {
		return nil, directoryError(c.Dir, err)
	}
	select {
	case <-system.Ready():
		return &Data{system, reference}, nil
	case <-system.Done():
		err = StopCause(system)
	case <-ctx.Done():
		err = errorf(Interrupted, "", "interrupted while the log was being read")
	}
	return nil, errors.Join(err, closeSystem(system))
}

// Close stops the system; accepted changes are on disk when it returns.
func (d *Data) Close() error { return closeSystem(d.System) }
