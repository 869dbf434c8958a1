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

// Node is a node that answers: callers over HTTP, its operator over a socket, this program in memory.
type Node struct {
	config    Config // with its defaults
	reference ReferenceData

	core        *core.Core
	system      *actors.System // of the core
	cluster     membership     // nil: the node is alone
	mailer      *codeMailer
	collector   *liveCollector
	certificate *certificate // nil: plain HTTP
	metrics     http.Handler
	server      *httpServer

	runContext context.Context // until Close
	cancel     context.CancelFunc
	background sync.WaitGroup // live and collectInTurn

	ready    chan struct{}
	done     chan struct{}
	doneOnce sync.Once // closes done
	err      error     // to be read when done is closed

	closeOnce sync.Once
	closeErr  error // what Close says
}

// Open opens a node: its log, actors, mail, listeners, management and collectors, in this order; what needs nothing of the data directory
// is checked before that is touched. It returns while the log is still read: until Ready callers are answered 503. ctx is for the opening
// alone. Close ends the node. The error is an *Error, or of the log, or several of them joined.
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

// closers end what was opened, the newest first.
type closers []func() error

func (c *closers) add(end func() error) { *c = append(*c, end) }

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
	var watched net.Listener
	if c.Admin.Metrics != "" {
		if watched, err = Listen(c.Admin.Metrics, "Admin.Metrics"); err != nil {
			return err
		}
		opened.add(watched.Close)
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
	if watched != nil {
		n.core.Admin.ServeMetrics(watched)
	}
	return nil
}

// reference is what the configuration gives, or what its files say.
func (c *Config) reference() (ReferenceData, error) {
	if c.Reference != nil {
		return *c.Reference, nil
	}
	return LoadReferenceData(c.Catalogue, c.Definitions)
}

// openCore opens the data directory, as that of one node of several where there are others, and makes what answers.
func (n *Node) openCore(ctx context.Context, opened *closers, listener net.Listener) (err error) {
	c := &n.config
	told := c.core(n.reference, n.mailer.sender)
	if n.cluster, err = joinCluster(ctx, c, &told.Actors); err != nil {
		return err
	}
	opened.add(func() error { return leaveCluster(n.cluster) })
	if c.HTTP.Demo {
		told.PublicURL = n.certificate.scheme() + listener.Addr().String()
	}
	told.HTTP.Limits, told.HTTP.Certificate = c.HTTP.limits(), n.certificate.certificateFunc()
	told.Conditions = func() []engine.Condition { return []engine.Condition{n.mailer.condition(), n.collector.condition()} }
	told.Readiness, told.Sources = n.completeReadiness, func() admin.Sources { return n.collector.describe() }
	if n.cluster != nil {
		told.Cluster = n.describeCluster
	}
	told.Metrics = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { n.metrics.ServeHTTP(w, r) })
	if n.core, err = core.Open(told); err != nil {
		return directoryError(err)
	}
	n.system = n.core.System
	opened.add(func() error { return closeSystem(n.system) })
	n.collector = newLiveCollector(c, n.system, n.reference.Sources)
	n.metrics = n.metricsHandler()
	return nil
}

// closeSystem stops the system in order: what was accepted is on disk when it returns.
func closeSystem(system *actors.System) error {
	if err := system.Close(); err != nil {
		return fmt.Errorf("close the data directory: %w", err)
	}
	return nil
}

// openSocket makes the operator's socket; nil without one.
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

// metricsHandler is what Prometheus reads.
func (n *Node) metricsHandler() http.Handler {
	told := metrics.Config{
		Version: n.config.Version, System: n.system, Server: n.core.Server, Health: n.core.Server.Conditions, Sources: n.collector.health,
		Certificates: n.certificate.forMetrics(),
	}
	if n.mailer.smtp != nil {
		told.Mail = n.mailer.smtp.Stats
	}
	if n.cluster != nil {
		told.Cluster = n.cluster.Status
		if shown := n.cluster.Certificate(); shown != nil {
			told.Certificates = append(told.Certificates, metrics.Certificate{ShownTo: metrics.ToNodes, ExpiresAt: func() time.Time { return shown.NotAfter }})
		}
	}
	return metrics.Handler(told)
}

// run waits for the recovery, begins to collect, and watches for the end.
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

// stopWith says why the node does not go on.
func (n *Node) stopWith(err error) {
	n.doneOnce.Do(func() {
		n.err = err
		close(n.done)
	})
}

// StopCause is why a system stopped by itself, nil when it did not.
func StopCause(system *actors.System) error {
	cause := system.Err()
	var damage *wal.DamageError
	var format *wal.FormatError
	switch {
	case cause == nil:
		return nil
	case errors.As(cause, &damage), errors.As(cause, &format), errors.Is(cause, actors.ErrUnknownRecord):
		return logError(cause)
	}
	return errorf(Failed, "", "stopped, because going on could lose data: %w; start it again", cause)
}

// checkData refuses data that this node may not serve.
func (n *Node) checkData() error {
	if announced := n.system.KeyPolicy(); n.config.Mail.method() == admin.MailLog && !announced.RequiredAt.IsZero() {
		return errorf(BadFile, "Mail.Way", "keys are announced for %s, and %s", formatInstant(announced.RequiredAt), admin.UnsafeMail)
	}
	return n.refuseDemoData()
}

// DemoPrefix begins the ids of a simulated market's sources.
const DemoPrefix = "demo-"

// refuseDemoData is the error of a node whose directory a simulated market has filled: nobody is to take made-up rates for real ones.
func (n *Node) refuseDemoData() error {
	page, err := n.system.Rates(engine.RatesQuery{PageRequest: engine.PageRequest{Limit: n.Rates()}})
	if err != nil {
		return nil //nolint:nilerr // nothing was ever published
	}
	for _, rate := range page.Items {
		if strings.HasPrefix(rate.SourceID, DemoPrefix) && !n.reference.Catalogue.HasSource(rate.SourceID) {
			return errorf(BadFile, "", "the data directory holds made-up rates, of %s: a demo has used it; give the node a directory of its own", rate.SourceID)
		}
	}
	return nil
}

// Collect begins to collect: always, or in turn with the other nodes. Only a node with Collect.Deferred needs it, once, when it is ready.
func (n *Node) Collect() {
	if n.cluster == nil {
		n.collector.start(n.runContext)
		return
	}
	n.collector.setActive(false)
	n.collector.start(n.runContext)
	n.background.Go(func() { n.collectWithLease(n.runContext) })
}

// URL is where callers reach the node, without a slash at the end.
func (n *Node) URL() string { return n.server.url }

// System is the node in memory: an engine.Service, account.Service, account.Operator and engine.Ingester.
func (n *Node) System() *actors.System { return n.system }

// Catalogue is what the node knows of institutions, currencies and sources.
func (n *Node) Catalogue() *engine.Catalogue { return n.reference.Catalogue }

// Socket is where the operator reaches the node.
func (n *Node) Socket() string { return n.config.Admin.Socket }

// Ready is closed when the log is read and data requests are answered.
func (n *Node) Ready() <-chan struct{} { return n.ready }

// Done is closed when the node has ended by itself; then Err says why. Close is wanted all the same.
func (n *Node) Done() <-chan struct{} { return n.done }

// Err is why the node has ended by itself, nil while it goes on.
func (n *Node) Err() error {
	select {
	case <-n.done:
		return n.err
	default:
		return nil
	}
}

// Rates is how many rates are published.
func (n *Node) Rates() int {
	page, err := n.system.Rates(engine.RatesQuery{PageRequest: engine.PageRequest{Limit: 1}})
	if err != nil {
		return 0 // nothing was ever published
	}
	return page.Total
}

// Close ends the node in order: what is being collected, requests in flight, the operator's too, then the system, whose accepted changes
// are on disk when it returns, then letters that wait. With HTTP.DrainDelay it first answers on for that long. Closing again says the same.
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

// waitDrainDelay answers on, for as long as balancers need to see that the node drains. A node that has stopped by itself has nothing to wait for.
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

// Data is the data directory of a node without callers.
type Data struct {
	System *actors.System
	ReferenceData
}

// OpenData opens the data directory of a node without callers, and waits until its log is read. It needs of the configuration what says
// where data are and what is known.
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
		return nil, directoryError(err)
	}
	select {
	case <-system.Ready():
		return &Data{system, reference}, nil
	case <-system.Done():
		err = StopCause(system)
	case <-ctx.Done():
		err = errorf(Interrupted, "", "interrupted while the log was replayed")
	}
	return nil, errors.Join(err, closeSystem(system))
}

// Close stops the system in order: what was accepted is on disk when it returns.
func (d *Data) Close() error { return closeSystem(d.System) }
