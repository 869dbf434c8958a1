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
	reference Reference

	core        *core.Core
	system      *actors.System // of the core
	cluster     membership     // nil: the node is alone
	post        *post
	collection  *collection
	certificate *certificate // nil: plain HTTP
	metrics     http.Handler
	front       *front

	living context.Context // until Close
	cancel context.CancelFunc
	beside sync.WaitGroup // live and collectInTurn

	ready chan struct{}
	done  chan struct{}
	once  sync.Once // closes done
	err   error     // to be read when done is closed

	closing sync.Once
	closed  error // what Close says
}

// Open opens a node: its log, actors, mail, listeners, management and collectors, in this order; what needs nothing of the data directory
// is checked before that is touched. It returns while the log is still read: until Ready callers are answered 503. ctx is for the opening
// alone. Close ends the node. The error is an *Error, or of the log, or several of them joined.
func Open(ctx context.Context, c Config) (*Node, error) {
	n := &Node{config: c.filled(), ready: make(chan struct{}), done: make(chan struct{})}
	var opened closers
	if err := n.open(ctx, &opened); err != nil {
		return nil, errors.Join(err, opened.close())
	}
	n.living, n.cancel = context.WithCancel(context.Background())
	n.beside.Go(func() { n.live(n.living) })
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
	if n.certificate, err = openCertificate(c.HTTP.TLS, c.Credentials); err != nil {
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
	if n.post, err = openPost(c); err != nil {
		return err
	}
	opened.add(func() error { n.post.close(ctx); return nil })
	if err := n.openCore(ctx, opened, listener); err != nil {
		return err
	}
	socket, err := n.openSocket(ctx)
	if err != nil {
		return err
	}
	n.startFront(listener)
	if socket != nil {
		n.core.Admin.Start(socket)
	}
	if watched != nil {
		n.core.Admin.Watch(watched)
	}
	return nil
}

// reference is what the configuration gives, or what its files say.
func (c *Config) reference() (Reference, error) {
	if c.Reference != nil {
		return *c.Reference, nil
	}
	return LoadReference(c.Catalogue, c.Definitions)
}

// openCore opens the data directory, as that of one node of several where there are others, and makes what answers.
func (n *Node) openCore(ctx context.Context, opened *closers, listener net.Listener) (err error) {
	c := &n.config
	told := c.core(n.reference, n.post.letters)
	if n.cluster, err = joinCluster(ctx, c, &told.Actors); err != nil {
		return err
	}
	opened.add(func() error { return leaveCluster(n.cluster) })
	if c.HTTP.Demo {
		told.PublicURL = n.certificate.scheme() + listener.Addr().String()
	}
	told.HTTP.Limits, told.HTTP.Certificate = c.HTTP.limits(), n.certificate.certify()
	told.Conditions = func() []engine.Condition { return []engine.Condition{n.post.condition(), n.collection.condition()} }
	told.Readiness, told.Sources = n.complete, func() admin.Sources { return n.collection.describe() }
	if n.cluster != nil {
		told.Cluster = n.describeCluster
	}
	told.Metrics = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { n.metrics.ServeHTTP(w, r) })
	if n.core, err = core.Open(told); err != nil {
		return directoryError(err)
	}
	n.system = n.core.System
	opened.add(func() error { return closeSystem(n.system) })
	n.collection = newCollection(c, n.system, n.reference.Sources)
	n.metrics = n.told()
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
	case errors.Is(err, admin.ErrAnswered):
		return nil, &Error{Busy, "Admin.Socket", err}
	case errors.Is(err, admin.ErrSocketPath):
		return nil, &Error{BadFile, "Admin.Socket", err}
	}
	return nil, fail(Unwritable, "Admin.Socket", "%w; choose another place", err)
}

// told is what Prometheus reads.
func (n *Node) told() http.Handler {
	told := metrics.Of{
		Version: n.config.Version, System: n.system, Front: n.core.Server, Health: n.core.Server.Conditions, Sources: n.collection.health,
		Certificates: n.certificate.shown(),
	}
	if n.post.smtp != nil {
		told.Mail = n.post.smtp.Stats
	}
	if n.cluster != nil {
		told.Cluster = n.cluster.Status
		if shown := n.cluster.Certificate(); shown != nil {
			told.Certificates = append(told.Certificates, metrics.Certificate{To: metrics.ToNodes, Ends: func() time.Time { return shown.NotAfter }})
		}
	}
	return metrics.Handler(told)
}

// live waits for the recovery, begins to collect, and watches for the end.
func (n *Node) live(ctx context.Context) {
	select {
	case <-n.system.Ready():
		if err := n.fit(); err != nil {
			n.end(err)
			return
		}
		close(n.ready)
		if !n.config.Collect.Later {
			n.Collect()
		}
	case <-n.system.Done():
	case <-n.front.ended:
	case <-ctx.Done():
		return
	}
	select {
	case <-n.system.Done():
		n.end(Stopped(n.system))
	case <-n.front.ended:
		n.end(fail(Failed, "", "the listener ended: %w", n.front.err))
	case <-ctx.Done():
	}
}

// end says why the node does not go on.
func (n *Node) end(err error) {
	n.once.Do(func() {
		n.err = err
		close(n.done)
	})
}

// Stopped is why a system stopped by itself, nil when it did not.
func Stopped(system *actors.System) error {
	cause := system.Err()
	var damage *wal.DamageError
	var format *wal.FormatError
	switch {
	case cause == nil:
		return nil
	case errors.As(cause, &damage), errors.As(cause, &format), errors.Is(cause, actors.ErrUnknownRecord):
		return logError(cause)
	}
	return fail(Failed, "", "stopped, because going on could lose data: %w; start it again", cause)
}

// fit refuses data that this node may not serve.
func (n *Node) fit() error {
	if announced := n.system.Transition(); n.config.Mail.way() == admin.MailLog && !announced.RequiredAt.IsZero() {
		return fail(BadFile, "Mail.Way", "keys are announced for %s, and %s", inWords(announced.RequiredAt), admin.UnsafeMail)
	}
	return n.refuseDemo()
}

// DemoPrefix begins the ids of a simulated market's sources.
const DemoPrefix = "demo-"

// refuseDemo is the error of a node whose directory a simulated market has filled: nobody is to take made-up rates for real ones.
func (n *Node) refuseDemo() error {
	page, err := n.system.Rates(engine.RatesQuery{Cut: engine.Cut{Limit: n.Rates()}})
	if err != nil {
		return nil //nolint:nilerr // nothing was ever published
	}
	for _, rate := range page.Items {
		if strings.HasPrefix(rate.SourceID, DemoPrefix) && !n.reference.Catalogue.HasSource(rate.SourceID) {
			return fail(BadFile, "", "the data directory holds made-up rates, of %s: a demo has used it; give the node a directory of its own", rate.SourceID)
		}
	}
	return nil
}

// Collect begins to collect: always, or in turn with the other nodes. Only a node with Collect.Later needs it, once, when it is ready.
func (n *Node) Collect() {
	if n.cluster == nil {
		n.collection.start(n.living)
		return
	}
	n.collection.turn(false)
	n.collection.start(n.living)
	n.beside.Go(func() { n.collectInTurn(n.living) })
}

// URL is where callers reach the node, without a slash at the end.
func (n *Node) URL() string { return n.front.url }

// System is the node in memory: an engine.Service, account.Service, account.Operator and engine.Intake.
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
	page, err := n.system.Rates(engine.RatesQuery{Cut: engine.Cut{Limit: 1}})
	if err != nil {
		return 0 // nothing was ever published
	}
	return page.Total
}

// Close ends the node in order: what is being collected, requests in flight, the operator's too, then the system, whose accepted changes
// are on disk when it returns, then letters that wait. With HTTP.DrainDelay it first answers on for that long. Closing again says the same.
func (n *Node) Close(ctx context.Context) error {
	n.closing.Do(func() { n.closed = n.close(ctx) })
	return n.closed
}

func (n *Node) close(ctx context.Context) error {
	n.cancel()
	n.beside.Wait()
	n.front.server.Drain()
	n.linger()
	n.collection.stop()
	n.handOver(ctx)
	err := errors.Join(n.front.stop(ctx), n.core.Admin.Stop(ctx), closeSystem(n.system), leaveCluster(n.cluster))
	n.post.close(ctx)
	return err
}

// linger answers on, for as long as balancers need to see that the node drains. A node that has stopped by itself has nothing to wait for.
func (n *Node) linger() {
	if n.config.HTTP.DrainDelay == 0 {
		return
	}
	timer := time.NewTimer(n.config.HTTP.DrainDelay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-n.system.Done():
	case <-n.front.ended:
	}
}

// Data is the data directory of a node without callers.
type Data struct {
	System *actors.System
	Reference
}

// OpenData opens the data directory of a node without callers, and waits until its log is read. It needs of the configuration what says
// where data are and what is known.
func OpenData(ctx context.Context, c Config) (*Data, error) {
	c = c.filled()
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
		err = Stopped(system)
	case <-ctx.Done():
		err = fail(Interrupted, "", "interrupted while the log was replayed")
	}
	return nil, errors.Join(err, closeSystem(system))
}

// Close stops the system in order: what was accepted is on disk when it returns.
func (d *Data) Close() error { return closeSystem(d.System) }
