//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

const (
	// capacityRounds is the number of rounds that measure the capacity of a server.
	capacityRounds = 7
	// firstMeasure is short, so that few accounts send a second request.
	firstMeasure = 400 * time.Millisecond
)

// measureFirstRequests restarts the node in each round, so that most requests are the first ones of their accounts.
func measureFirstRequests(ctx context.Context, r *runner, s *scenario) error {
	f, _, err := r.fixture(s.accounts)
	if err != nil {
		return err
	}
	_, bare, err := r.sides(ctx, &scenario{mix: s.mix})
	if err != nil {
		return err
	}
	first := func(on *server) (sample, error) {
		requests := newMix(benchHost, f.keys, bare.templates)
		requests.inTurn = true
		return r.sample(ctx, on, &generator{Requests: requests, Connections: r.options.Connections, Measure: min(r.options.Measure, firstMeasure)})
	}
	var pairs []pair
	for range r.options.Rounds {
		copied := &fixture{dir: filepath.Join(r.dir, "first"), keys: f.keys}
		if err := errors.Join(os.RemoveAll(copied.dir), os.CopyFS(copied.dir, os.DirFS(f.dir))); err != nil {
			return err
		}
		node, err := startNode(ctx, r.tasard, copied, serverCore)
		if err != nil {
			return err
		}
		var p pair
		if p.a, err = first(node); err == nil {
			p.b, err = first(bare.server)
		}
		if err = errors.Join(err, node.stop()); err != nil {
			return err
		}
		pairs = append(pairs, p)
	}
	r.addRatios(s, "", pairs, [2]string{"node", bareName})
	return nil
}

// halfCapacity measures how many requests per second a server can answer, and returns half of that number.
func (r *runner) halfCapacity(ctx context.Context, s side) (float64, error) {
	var capacity []float64
	for range min(r.options.Rounds, capacityRounds) {
		result, err := r.measure(ctx, s)
		if err != nil {
			return 0, err
		}
		capacity = append(capacity, requestsPerSecond(&result))
	}
	return median(capacity) / 2, nil
}

// measureRefresh compares the latency of a node with and without an update of all quotes, at half of its capacity. The
// node runs on all cores.
func measureRefresh(ctx context.Context, r *runner, s *scenario) error {
	f, keys, err := r.fixture(0)
	if err != nil {
		return err
	}
	f.certificate = nil
	node, err := r.track(startNode(ctx, r.tasard, f, anyCore))
	if err != nil {
		return err
	}
	on := side{server: node, keys: keys, templates: mixes()[s.mix]}
	if on.rate, err = r.halfCapacity(ctx, on); err != nil {
		return err
	}
	var pairs []pair
	for range r.options.Rounds {
		var p pair
		if p.b, err = r.measure(ctx, on); err != nil {
			return err
		}
		file := filepath.Join(r.dir, "refresh.csv")
		if err := f.writeRefresh(file); err != nil {
			return err
		}
		update, err := startProcess("tasard import", anyCore, r.tasard, "import", "--data", f.dir, file)
		if err != nil {
			return err
		}
		if p.a, err = r.measure(ctx, on); err != nil {
			return errors.Join(err, update.stop())
		}
		if err := update.awaitExit(ctx); err != nil {
			return err
		}
		pairs = append(pairs, p)
	}
	r.addRatios(s, fmt.Sprintf("at %.0f requests/s: ", on.rate), pairs, [2]string{"refresh", "quiet"})
	return nil
}
