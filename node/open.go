package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/httpapi/admin"
	"github.com/tasard/tasard/node/core"
	"github.com/tasard/tasard/node/metrics"
	"github.com/tasard/tasard/wal"
)

// closers are functions that close the opened parts of a node. close calls them in reverse order.
type closers []func() error

func (c *closers) add(closeFunc func() error) { *c = append(*c, closeFunc) }

func (c *closers) close() error {
	var problems []error
	for i := len(*c) - 1; i >= 0; i-- {
		problems = append(problems, (*c)[i]())
	}
	return errors.Join(problems...)
}

// listeners are the node's listeners. All but http are optional (nil).
type listeners struct{ http, redirect, metrics net.Listener }

func (n *Node) open(ctx context.Context, opened *closers) error {
	if err := n.openFiles(opened); err != nil {
		return err
	}
	l, late, err := n.listen(opened)
	if err != nil {
		return err
	}
	if n.mailer, err = openMailer(&n.config); err != nil {
		return err
	}
	opened.add(func() error { n.mailer.close(ctx); return nil })
	if err := n.openCore(ctx, opened, l.http); err != nil {
		return err
	}
	if err := n.openACME(); err != nil {
		return err
	}
	socket, err := n.openSocket(ctx)
	if err != nil {
		return err
	}
	if late {
		if l.http, err = n.listenWhenReady(ctx, l.http.Addr().String()); err != nil {
			return err
		}
	}
	n.startRedirect(l.redirect)
	n.startServer(l.http)
	if socket != nil {
		n.core.Admin.ServeSocket(socket)
	}
	if l.metrics != nil {
		n.core.Admin.ServeMetrics(l.metrics)
	}
	return nil
}

// openFiles checks the directory and the process's limits, and reads the configured files.
func (n *Node) openFiles(opened *closers) (err error) {
	c := &n.config
	if c.HTTP.Listener != nil {
		opened.add(c.HTTP.Listener.Close)
	}
	if c.Dir == "" {
		return errNoDir
	}
	if err := errors.Join(checkDir(c.Dir), c.HTTP.checkDescriptors(), c.Cluster.check(c)); err != nil {
		return err
	}
	if n.reference, err = c.reference(); err != nil {
		return err
	}
	if n.certificate, err = c.loadCertificate(); err != nil {
		return err
	}
	n.certificate.warn(c.Logger, c.Clock())
	return nil
}

// listen opens the listeners. late means that the one for clients is closed again until the node is ready
// (closeUntilReady).
func (n *Node) listen(opened *closers) (l listeners, late bool, err error) {
	c := &n.config
	if l.http = c.HTTP.Listener; l.http == nil {
		if l.http, err = Listen(c.HTTP.Listen, "HTTP.Listen"); err != nil {
			return l, false, err
		}
		listener := l.http
		opened.add(func() error {
			if err := listener.Close(); !errors.Is(err, net.ErrClosed) {
				return err
			}
			return nil
		})
	}
	if late, err = n.closeUntilReady(l.http); err != nil {
		return l, late, err
	}
	if l.redirect, err = n.listenRedirect(opened); err != nil || c.Admin.Metrics == "" {
		return l, late, err
	}
	if l.metrics, err = Listen(c.Admin.Metrics, "Admin.Metrics"); err != nil {
		return l, late, err
	}
	opened.add(l.metrics.Close)
	return l, late, nil
}

// reference returns Config.Reference, or reads the files of Catalogue and Definitions if it is nil.
func (c *Config) reference() (ReferenceData, error) {
	if c.Reference != nil {
		return *c.Reference, nil
	}
	return LoadReferenceData(c.Catalogue, c.Definitions)
}

// openCore joins the cluster, if one is configured, and opens the core: the actors with their log, and the servers.
func (n *Node) openCore(ctx context.Context, opened *closers, listener net.Listener) (err error) {
	c := &n.config
	if c.Cluster.Name == "" {
		if err := CheckSingle(c.Dir); err != nil {
			return err
		}
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
	coreConfig.Conditions, coreConfig.BackedUp = n.ownConditions, n.recordBackup
	coreConfig.Collection = func() (time.Time, []string) { return n.collector.progress() }
	coreConfig.Readiness, coreConfig.Sources = n.completeReadiness, func() admin.Sources { return n.collector.describe() }
	coreConfig.RunSource = func(ctx context.Context, id string) (admin.SourceRun, error) { return n.collector.tryNow(ctx, id) }
	if n.cluster != nil {
		coreConfig.Cluster = n.cluster.Status
	}
	coreConfig.Metrics = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { n.metrics.ServeHTTP(w, r) })
	if n.core, err = core.Open(coreConfig); err != nil {
		return directoryError(c.Dir, err)
	}
	n.system = n.core.System
	opened.add(func() error { return closeSystem(n.system) })
	secrets, err := c.ReadSourceSecrets(n.reference.Sources)
	if err != nil {
		return err
	}
	n.collector = newLiveCollector(c, n.system, n.reference.Sources, secrets)
	n.readLastBackup()
	n.metrics = n.metricsHandler()
	return nil
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
		CertificateExpiry: n.certificate.forMetrics(), DroppedLogLines: n.config.DroppedLogLines,
		DiskFree: func() (int64, error) { return wal.FreeSpace(n.config.Dir) },
		Backup:   n.backups.last, Reload: n.reloads.last,
	}
	if n.mailer.smtp != nil {
		config.Mail = n.mailer.smtp.Stats
	}
	if n.collector.archive != nil {
		config.Archive = n.collector.archive.Stats
	}
	if n.cluster != nil {
		config.Cluster = n.cluster.Status
	}
	return metrics.Handler(config)
}
