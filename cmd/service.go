package cmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/actors/cluster"
)

// service is a node that answers: callers over HTTP, its operator over a socket.
type service struct {
	node       *node
	cluster    *cluster.Cluster // nil: the node is alone
	front      *front
	management *management
	exposition *exposition // nil: no listener for Prometheus
	post       *post
	collection *collection

	certificate *certificate // nil: plain HTTP
	drainDelay  time.Duration
	notifier    *notifier // nil: there is no service manager
}

// serviceOptions say what a service is made of.
type serviceOptions struct {
	node     nodeOptions
	cluster  clusterOptions
	front    frontOptions
	accounts accountOptions
	collect  collectOptions
}

// startService starts all parts on a listener, which it closes when it fails. What needs nothing of the data directory is
// checked before that is touched.
func (p *process) startService(ctx context.Context, o *serviceOptions, known known, listener net.Listener, log *slog.Logger) (s *service, err error) {
	certificate, err := openCertificate(o.front.tls, p.variable(credentialsVariable))
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	certificate.warn(log, p.clock())
	metrics, err := listenMetrics(o.front.metrics)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	post, err := p.openPost(&o.accounts, log)
	if err != nil {
		return nil, errors.Join(err, listener.Close(), metrics.Close())
	}
	defer func() {
		if err != nil {
			post.close(ctx)
			err = errors.Join(err, metrics.Close())
		}
	}()
	node, joined, err := p.startAmong(ctx, o, known, post, log)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	socket, err := listenAdmin(ctx, o.accounts.socket(o.node.data))
	if err != nil {
		return nil, errors.Join(err, listener.Close(), node.close(), leaveCluster(joined))
	}
	collection := p.newCollection(node, known.set, &o.collect, o.node.sources, log)
	management := &management{
		node: node.system, catalogue: known.catalogue, sources: collection, allowance: o.accounts.terms().Allowance, mail: o.accounts.way(), clock: p.clock, log: log,
	}
	o.front.proxies, o.front.accountURL = o.accounts.proxies, o.accounts.accountURL
	o.front.mail, o.front.allowance = o.accounts.way(), o.accounts.terms().Allowance
	health := &health{node.system, post, collection}
	front := p.startFront(node, listener, o.front, certificate, health, log)
	management.health, management.front, management.system = &wholeHealth{health, front.server}, front.server, node.system
	management.certificates = certificate.shown()
	if joined != nil {
		management.cluster = joined
		if shown := joined.Certificate(); shown != nil {
			management.certificates = append(management.certificates, shownCertificate{shownToNodes, func() time.Time { return shown.NotAfter }})
		}
	}
	management.start(socket)
	return &service{
		node, joined, front, management, management.expose(metrics), post, collection, certificate, o.front.drainDelay, p.newNotifier(node, log),
	}, nil
}

// startAmong opens the data directory, as that of one node of several where there are others.
func (p *process) startAmong(ctx context.Context, o *serviceOptions, known known, post *post, log *slog.Logger) (*node, *cluster.Cluster, error) {
	c := actors.Config{
		Dir: o.node.data, Catalogue: known.catalogue, Logger: log,
		Terms: o.accounts.terms(), LimitsOff: !o.accounts.limits, KeyPrefix: o.accounts.keyPrefix, Mailer: post.letters,
	}
	joined, err := p.joinCluster(ctx, &o.cluster, &c)
	if err != nil {
		return nil, nil, err
	}
	node, err := p.startNodeWith(c)
	if err != nil {
		return nil, nil, errors.Join(err, leaveCluster(joined))
	}
	return node, joined, nil
}

// await returns true when wanted gives something, false when the node is to stop: by a signal, or for the reason that the
// error tells.
func await[T any](ctx context.Context, s *service, wanted <-chan T) (bool, error) {
	select {
	case <-ctx.Done():
		return false, nil
	default:
	}
	select {
	case <-wanted:
		return true, nil
	case <-ctx.Done():
		return false, nil
	case <-s.node.system.Done():
		return false, s.node.failure(nil)
	case <-s.front.ended:
		return false, fail(exitFailStop, "the listener ended: %w", s.front.err)
	}
}

// ready waits for the recovery; false and the error are those of await. A node that prints login codes ends here when its
// log says that keys are announced.
func (s *service) ready(ctx context.Context) (bool, error) {
	if ready, err := await(ctx, s, s.node.system.Ready()); !ready {
		return false, err
	}
	if announced := s.node.system.Transition(); s.management.mail == mailLog && !announced.RequiredAt.IsZero() {
		return false, fail(exitBadData, "keys are announced for %s, and %s", instant(announced.RequiredAt), unsafeMail)
	}
	return true, nil
}

// stop ends the service in order: what is being collected, requests in flight, the operator's too, then the system, then
// letters that wait.
func (s *service) stop(ctx context.Context) error {
	s.notifier.tell(daemon.SdNotifyStopping)
	s.front.server.Drain()
	s.linger()
	s.collection.stop()
	s.handOver(ctx)
	err := errors.Join(s.front.stop(ctx), s.management.stop(ctx), s.exposition.stop(ctx), s.node.close(), leaveCluster(s.cluster))
	s.post.close(ctx)
	s.notifier.end()
	return err
}

// linger answers on, for as long as balancers need to see that the node drains. A node that has stopped by itself has nothing to wait for.
func (s *service) linger() {
	if s.drainDelay == 0 {
		return
	}
	timer := time.NewTimer(s.drainDelay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.node.system.Done():
	case <-s.front.ended:
	}
}

// status is one line about the node for the service manager.
func (s *service) status() string {
	return fmt.Sprintf("%s rates, %s", grouped(s.node.rates()), s.front.url)
}
