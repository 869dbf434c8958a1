package main

import (
	"context"
	"errors"
	"log/slog"
	"net"

	"github.com/tasard/tasard/actors"
)

// service is a node that answers: callers over HTTP, its operator over a socket.
type service struct {
	node       *node
	front      *front
	management *management
	post       *post
	collection *collection
}

// serviceOptions say what a service is made of.
type serviceOptions struct {
	node     nodeOptions
	front    frontOptions
	accounts accountOptions
	collect  collectOptions
}

// startService starts all parts on a listener, which it closes when it fails. What needs nothing of the data directory is
// checked before that is touched.
func (p *process) startService(ctx context.Context, o *serviceOptions, known known, listener net.Listener, log *slog.Logger) (s *service, err error) {
	post, err := p.openPost(&o.accounts, log)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	defer func() {
		if err != nil {
			post.close(ctx)
		}
	}()
	node, err := p.startNodeWith(actors.Config{
		Dir: o.node.data, Catalogue: known.catalogue, Logger: log,
		Terms: o.accounts.terms(), LimitsOff: !o.accounts.limits, KeyPrefix: o.accounts.keyPrefix, Mailer: post.letters,
	})
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	socket, err := listenAdmin(ctx, o.accounts.socket(o.node.data))
	if err != nil {
		return nil, errors.Join(err, listener.Close(), node.close())
	}
	collection := p.newCollection(node, known.set, &o.collect, o.node.sources, log)
	management := &management{
		node: node.system, catalogue: known.catalogue, sources: collection, allowance: o.accounts.terms().Allowance, mail: o.accounts.way(), clock: p.clock, log: log,
	}
	o.front.proxies, o.front.accountURL = o.accounts.proxies, o.accounts.accountURL
	health := &health{node.system, post, collection}
	front := p.startFront(node, listener, o.front, health, log)
	management.health = &wholeHealth{health, front.server}
	management.start(socket)
	return &service{node, front, management, post, collection}, nil
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
	s.front.server.Drain()
	s.collection.stop()
	err := errors.Join(s.front.stop(ctx), s.management.stop(ctx), s.node.close())
	s.post.close(ctx)
	return err
}
