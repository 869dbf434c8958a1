package node

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/actors/cluster"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/admin"
	"github.com/tasard/tasard/node/core"
	"github.com/tasard/tasard/wal"
)

// Node is a running server of exchange rates with its own data directory.
type Node struct {
	config    Config // with defaults
	reference ReferenceData

	core        *core.Core
	system      *actors.System   // the same as core.System
	cluster     *cluster.Cluster // nil if the node is not in a cluster
	mailer      *codeMailer
	collector   *liveCollector
	certificate *certificate    // nil for plain HTTP
	redirect    *redirectServer // nil without HTTP.ACME
	backups     outcome         // of the last backup
	reloads     outcome         // of the last Reload
	metrics     http.Handler
	server      *httpServer

	runContext context.Context // Close cancels it
	cancel     context.CancelFunc
	background sync.WaitGroup // the goroutines of run, logConditions and collectWhileLeading

	ready    chan struct{}
	done     chan struct{}
	doneOnce sync.Once // closes done
	err      error     // valid when done is closed

	closeOnce sync.Once
	closeErr  error // result of Close
}

// Open starts a node. It first checks everything outside the data directory. It returns while the node is still reading
// its log; until the channel of Ready is closed, requests get 503. Afterwards ctx has no effect. The caller must call
// Close. The error is an *Error, an error of the log, or several errors joined.
func Open(ctx context.Context, c Config) (*Node, error) {
	n := &Node{config: c.withDefaults(), ready: make(chan struct{}), done: make(chan struct{})}
	var opened closers
	if err := n.open(ctx, &opened); err != nil {
		return nil, errors.Join(err, opened.close())
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

// stopWith reports through Done and Err that the node has ended by itself. Only the first call has an effect.
func (n *Node) stopWith(err error) {
	n.doneOnce.Do(func() {
		n.err = err
		close(n.done)
	})
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
	if policy := n.system.KeyPolicy(); n.config.Mail.method() == admin.MailLog && !policy.RequiredAt.IsZero() {
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
func (n *Node) URL() string { return n.server.url }

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
	n.server.server.Drain()
	n.waitDrainDelay()
	n.collector.pause()
	n.transferLeadership(ctx)
	n.redirect.stop()
	err := errors.Join(n.server.stop(ctx), n.core.Admin.Stop(ctx), closeSystem(n.system), leaveCluster(n.cluster))
	n.mailer.close(ctx)
	return err
}

// waitDrainDelay waits for HTTP.DrainDelay, unless the node has ended by itself.
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
