package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/actors/cluster"
	"github.com/tasard/tasard/actors/mail"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/admin"
	"github.com/tasard/tasard/node/core"
	"github.com/tasard/tasard/node/metrics"
	"github.com/tasard/tasard/wal"
)

// Node is a running server of exchange rates with its own data directory.
type Node struct {
	config Config // with defaults
	files

	core      *core.Core
	system    *actors.System   // the same as core.System
	cluster   *cluster.Cluster // nil if the node is not in a cluster
	sender    actors.Mailer    // sends login codes; nil if Mail.Method is MailOff
	mailer    *mail.Mailer     // nil if Mail.Method is not MailSMTP
	collector *liveCollector
	redirect  *http.Server // for plain HTTP beside HTTPS; nil without HTTP.ACME
	redirects sync.WaitGroup
	backups   metrics.Outcome
	reloads   metrics.Outcome
	admin     *admin.Server
	listeners listeners

	url      string        // of the HTTP server
	served   chan struct{} // closed when the HTTP server's Serve has returned
	serveErr error         // result of Serve, valid when served is closed

	runContext context.Context // Close cancels it
	cancel     context.CancelFunc
	background sync.WaitGroup // the goroutines of run, logConditions and collectWhileLeading

	ready chan struct{}
	done  chan struct{}
	err   error // valid when done is closed

	closeOnce sync.Once
	closeErr  error // result of Close
}

// Open starts a node. It first checks everything outside the data directory. It returns while the node is still reading
// its log; until the channel of Ready is closed, requests get 503. Afterwards ctx has no effect. The caller must call
// Close. The error is an *Error, an error of the log, or several errors joined.
func Open(ctx context.Context, c Config) (*Node, error) {
	n := &Node{config: c.withDefaults(), ready: make(chan struct{}), done: make(chan struct{})}
	if err := n.open(ctx); err != nil {
		return nil, errors.Join(err, n.abandon(ctx))
	}
	n.runContext, n.cancel = context.WithCancel(context.Background())
	n.background.Go(func() { n.run(n.runContext) })
	if n.certificate.managed() {
		n.background.Go(func() { n.certificate.manager.Run(n.runContext) })
	}
	return n, nil
}

// run starts collecting (fetching rates) when the system has read its log. It then waits until the node fails or ctx
// ends.
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
	case <-n.served:
	case <-ctx.Done():
		return
	}
	select {
	case <-n.system.Done():
		n.stopWith(StopCause(n.system))
	case <-n.served:
		n.stopWith(errorf(Failed, "", "the listener ended: %w", n.serveErr))
	case <-ctx.Done():
	}
}

// stopWith reports through Done and Err that the node has ended by itself. Only run calls it, once.
func (n *Node) stopWith(err error) {
	n.err = err
	close(n.done)
}

// StopCause returns the error that stopped a system, or nil if the system runs or was closed.
func StopCause(system *actors.System) error {
	err := system.Err()
	var damageErr *wal.DamageError
	var formatErr *wal.FormatError
	var joinErr joinError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &joinErr):
		return joinErr.error
	case errors.As(err, &damageErr), errors.As(err, &formatErr), errors.Is(err, actors.ErrUnknownRecord):
		return logError(err)
	}
	return errorf(Failed, "", "stopped, because going on could lose data: %w; start the node again", err)
}

// checkData returns an error if this node must not serve the data in its directory.
func (n *Node) checkData() error {
	if policy := n.system.KeyPolicy(); n.config.Mail.MethodOrDefault() == admin.MailLog && !policy.RequiredAt.IsZero() {
		return errorf(BadFile, "Mail.Method", "keys are announced for %s, and %s", formatInstant(policy.RequiredAt), admin.UnsafeMail)
	}
	return n.rejectDemoData()
}

// Collect starts collecting: the node fetches rates from the sources, and logs its problems. In a cluster only the
// leader collects (cluster.Lead). The node calls Collect itself unless Collect.Deferred is set. Then the caller must
// call it once when the node is ready. A caller that publishes rates first thus avoids warnings about missing rates.
func (n *Node) Collect() {
	n.background.Go(func() { n.logConditions(n.runContext) })
	if n.cluster == nil {
		n.collector.start(n.runContext)
		return
	}
	n.collector.pause()
	n.background.Go(func() { n.collectWhileLeading(n.runContext) })
}

// URL returns the URL of the HTTP server without a trailing slash.
func (n *Node) URL() string { return n.url }

// System returns the node's API for Go programs. It implements engine.Service, account.Service and account.Operator.
func (n *Node) System() *actors.System { return n.system }

// Catalogue returns the node's institutions, currencies and sources.
func (n *Node) Catalogue() *engine.Catalogue { return n.reference.Catalogue }

// Socket returns the path of the management socket.
func (n *Node) Socket() string { return n.config.Admin.Socket }

// Ready returns a channel that is closed when the node has read its log and answers data requests.
func (n *Node) Ready() <-chan struct{} { return n.ready }

// Done returns a channel that is closed when the node has ended by itself; see Err. The caller must still call Close.
func (n *Node) Done() <-chan struct{} { return n.done }

// Err returns why the node ended by itself, or nil while Done is open.
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
		return 0 // the system has no rates yet
	}
	return page.Total
}

// Close stops the node. It first keeps answering for HTTP.DrainDelay. It then stops collecting, waits for requests in
// flight, stops the management API and the system (actors and log), and sends queued e-mails. When it returns, all
// accepted changes are on disk. Further calls return the first result.
func (n *Node) Close(ctx context.Context) error {
	n.closeOnce.Do(func() { n.closeErr = n.close(ctx) })
	return n.closeErr
}

func (n *Node) close(ctx context.Context) error {
	n.cancel()
	n.background.Wait()
	n.core.Server.Drain()
	if delay := n.config.HTTP.DrainDelay; delay > 0 {
		n.waitUpTo(delay, n.served)
	}
	n.collector.pause()
	n.transferLeadership(ctx)
	n.stopRedirect()
	err := errors.Join(n.stopServer(ctx), n.admin.Stop(ctx), closeSystem(n.system), leaveCluster(n.cluster))
	n.closeMailer(ctx)
	return err
}

// Data is an open data directory, without a server.
type Data struct {
	System *actors.System
	ReferenceData
}

// OpenData opens the data directory, and waits until its log has been read. It ignores the fields of Config for
// listeners, mail, the cluster and collecting. Before making changes, call CheckSingle.
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

// Close stops the system: the actors and their log. When it returns, all accepted changes are on disk.
func (d *Data) Close() error { return closeSystem(d.System) }

// abandon closes the parts of a node that could not be opened.
func (n *Node) abandon(ctx context.Context) error {
	var problems []error
	if n.system != nil {
		problems = append(problems, closeSystem(n.system))
	}
	problems = append(problems, leaveCluster(n.cluster))
	n.closeMailer(ctx)
	l := &n.listeners
	for _, listener := range []net.Listener{l.socket, l.metrics, l.redirect, l.http} {
		if listener == nil {
			continue
		}
		if err := listener.Close(); !errors.Is(err, net.ErrClosed) {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// listeners are the node's listeners. All but http are optional (nil).
type listeners struct{ http, redirect, metrics, socket net.Listener }

func (n *Node) open(ctx context.Context) error {
	l := &n.listeners
	l.http, l.redirect = n.config.HTTP.Listener, n.config.HTTP.ACME.RedirectListener
	if err := n.openFiles(); err != nil {
		return err
	}
	late, err := n.listen()
	if err != nil {
		return err
	}
	n.openMailer()
	if err := n.openCore(ctx, l.http); err != nil {
		return err
	}
	if n.certificate.managed() {
		if err := n.certificate.manager.Open(); err != nil {
			return &Error{BadFile, "HTTP.ACME", err}
		}
	}
	if l.socket, err = n.openSocket(ctx); err != nil {
		return err
	}
	if late {
		if l.http, err = n.listenWhenReady(ctx, l.http.Addr().String()); err != nil {
			return err
		}
	}
	n.startRedirect(l.redirect)
	n.startServer(l.http)
	if l.socket != nil {
		n.admin.ServeSocket(l.socket)
	}
	if l.metrics != nil {
		n.admin.ServeMetrics(l.metrics)
	}
	return nil
}

// openFiles checks the directory and the process's limits, and reads the configured files.
func (n *Node) openFiles() (err error) {
	c := &n.config
	if c.Dir == "" {
		return errNoDir
	}
	n.files, err = c.readFiles()
	if err = errors.Join(checkDir(c.Dir), err); err != nil {
		return err
	}
	n.certificate.warn(c.Logger, c.Clock())
	return nil
}

// listen opens the listeners of TCP. late means that the one for clients of a cluster node is closed again;
// listenWhenReady opens it.
func (n *Node) listen() (late bool, err error) {
	c, l := &n.config, &n.listeners
	if l.http == nil {
		l.http, err = Listen(c.HTTP.Listen, "HTTP.Listen")
		if late = err == nil && c.Cluster.Name != ""; late {
			err = l.http.Close()
		}
	}
	if err == nil && l.redirect == nil && c.HTTP.ACME.Name != "" {
		l.redirect, err = Listen(c.HTTP.ACME.Redirect, "HTTP.ACME.Redirect")
	}
	if err == nil && c.Admin.Metrics != "" {
		l.metrics, err = Listen(c.Admin.Metrics, "Admin.Metrics")
	}
	return late, err
}

// reference returns Config.Reference, or reads the files of Catalogue and Definitions if it is nil.
func (c *Config) reference() (ReferenceData, error) {
	if c.Reference != nil {
		return *c.Reference, nil
	}
	return LoadReferenceData(c.Catalogue, c.Definitions)
}

// openCore joins the cluster, if one is configured, and opens the core and the management API.
func (n *Node) openCore(ctx context.Context, listener net.Listener) (err error) {
	c := &n.config
	if c.Cluster.Name == "" {
		if err := CheckSingle(c.Dir); err != nil {
			return err
		}
	}
	coreConfig := c.core(n.reference, n.sender)
	if n.cluster, err = joinCluster(ctx, c, &coreConfig.Actors); err != nil {
		return err
	}
	if c.HTTP.Demo {
		coreConfig.PublicURL = n.certificate.scheme() + listener.Addr().String()
	}
	if n.certificate != nil {
		coreConfig.HTTP.Certificate = n.certificate.getCertificate
	}
	coreConfig.Conditions = n.ownConditions
	coreConfig.Collection = func() (time.Time, []string) { return n.collector.progress() }
	if n.core, err = core.Open(coreConfig); err != nil {
		return directoryError(c.Dir, err)
	}
	n.system = n.core.System
	n.collector = newLiveCollector(c, n.system, n.reference.Sources, n.sourceSecrets)
	n.readLastBackup()
	n.admin = n.newAdmin()
	return nil
}

// newAdmin returns the server of the management API and of the metrics.
func (n *Node) newAdmin() *admin.Server {
	c := &n.config
	config := admin.Config{
		Node: n.system, Catalogue: n.reference.Catalogue, DefaultQuota: c.Accounts.Quota.DefaultQuota, Mail: c.Mail.MethodOrDefault(), Clock: c.Clock, Logger: c.Logger,
		Readiness: n.readiness, Sources: n.collector.describe, RunSource: n.collector.tryNow, Metrics: n.metricsHandler(), Backup: n.backup,
	}
	if n.cluster != nil {
		config.Cluster = n.cluster.Status
	}
	return admin.New(config)
}

// closeSystem stops the system: the actors and their log. When it returns, all accepted changes are on disk.
func closeSystem(system *actors.System) error {
	if err := system.Close(); err != nil {
		return fmt.Errorf("close the data directory: %w", err)
	}
	return nil
}

// openSocket creates the management socket. It returns nil if Admin.Off is set.
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

func (n *Node) metricsHandler() http.Handler {
	config := metrics.Config{
		Version: n.config.Version, System: n.system, Server: n.core.Server.Metrics(), Health: n.core.Server.Conditions, Sources: n.SourceHealth,
		CertificateExpiry: n.certificate.expiry, DroppedLogLines: n.config.DroppedLogLines,
		DiskFree: func() (int64, error) { return wal.FreeSpace(n.config.Dir) },
		Backup:   &n.backups, Reload: &n.reloads,
	}
	if n.mailer != nil {
		config.Mail = n.mailer.Stats
	}
	if n.collector.archive != nil {
		config.Archive = n.collector.archive.Stats
	}
	if n.cluster != nil {
		config.Cluster = n.cluster.Status
	}
	return metrics.Handler(config)
}
