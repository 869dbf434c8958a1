//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tasard/tasard/bench/load"
)

// Numbers of accounts and requests in the measurements with many accounts.
const (
	leasedAccounts = 20_000
	firstAccounts  = 30_000
	leaseRate      = 25_000 // requests per second
	// firstMeasure is short, so that few accounts send a second request.
	firstMeasure = 400 * time.Millisecond
)

// startSide creates data in a subdirectory of the scratch directory and starts a node on it. The node is one of the two
// sides of a comparison.
func (r *runner) startSide(ctx context.Context, dir string, size fixtureSize, flags ...string) (side, error) {
	fix, err := newFixture(filepath.Join(r.dir, dir), size)
	if err != nil {
		return side{}, err
	}
	node, err := r.track(r.startNode(ctx, fix, flags...))
	return side{server: node, keys: fix.keys, mix: mixBestRates}, err
}

// startLeased starts a node with many accounts, and sends requests for all of them. The node reserves a part of an
// account's daily quota in its log at once (a quota lease); lease is the number of requests in such a part.
func (r *runner) startLeased(ctx context.Context, dir, lease string) (side, error) {
	size := standardSize()
	size.accounts, size.days = leasedAccounts, 1
	s, err := r.startSide(ctx, dir, size, "--lease", lease)
	if err == nil {
		err = r.useAllAccounts(ctx, s.server, s.keys)
	}
	return s, err
}

func measureLeasedAccounts(ctx context.Context, r *runner, g *goal) error {
	node, err := r.startLeased(ctx, "leased-16", "16")
	if err != nil {
		return err
	}
	bare, err := r.startBaseline(ctx, bareName, mixBestRates)
	if err != nil {
		return err
	}
	pairs, err := r.compare(ctx, node, side{server: bare, keys: node.keys, mix: mixBestRates})
	if err == nil {
		g.addComparison(pairs, bareName, "20,000 accounts", 1, 1)
	}
	return err
}

// measureFirstRequests restarts the node in each round, so that most requests are the first requests of their
// accounts.
func measureFirstRequests(ctx context.Context, r *runner, g *goal) error {
	size := standardSize()
	size.accounts, size.days = firstAccounts, 1
	fix, err := newFixture(filepath.Join(r.dir, "first"), size)
	if err != nil {
		return err
	}
	bare, err := r.startBaseline(ctx, bareName, mixBestRates)
	if err != nil {
		return err
	}
	var pairs []pair
	for range r.options.Rounds {
		node, err := r.startNode(ctx, fix, "--quota-day", "1000", "--quota-minute", "60", "--lease", "16")
		if err != nil {
			return err
		}
		var p pair
		if p.a, err = r.firstRequests(ctx, node, fix.keys); err == nil {
			p.b, err = r.firstRequests(ctx, bare, fix.keys)
		}
		if err = errors.Join(err, node.stop()); err != nil {
			return err
		}
		pairs = append(pairs, p)
	}
	g.addComparison(pairs, bareName, "first requests", 0.80, 1.25)
	return nil
}

// firstRequests puts a load on a node for a short time. Each request has the key of the next account.
func (r *runner) firstRequests(ctx context.Context, s *server, keys []string) (sample, error) {
	source := &perAccount{keys: keys, mix: newMix(benchHost, nil, mixes()[mixBestRates])}
	group := &load.Clients{Requests: source, Connections: r.options.Connections}
	return r.sample(ctx, s, &load.Generator{Groups: []*load.Clients{group}, Measure: min(r.options.Measure, firstMeasure)})
}

// measureLatencyWithLeases compares the latency of two nodes. One has small quota leases, so it writes new ones to its
// log every few seconds. The other writes none, because its leases are so large that they are not used up.
func measureLatencyWithLeases(ctx context.Context, r *runner, g *goal) error {
	writing, err := r.startLeased(ctx, "writing", "16")
	if err != nil {
		return err
	}
	quiet, err := r.startLeased(ctx, "quiet", nodeLease)
	if err != nil {
		return err
	}
	return r.compareLatency(ctx, g, leaseRate, 1.5, [2]string{"leases of 16", "leases of " + nodeLease}, writing, quiet)
}

// coresBenchmark is a benchmark of package actors. It measures how long it takes to admit a request and to rank rates.
// Its sub-benchmark control does work in which goroutines share no data.
const coresBenchmark = "BenchmarkCores"

// measureCores runs coresBenchmark with one and with two processors, and compares the times.
func measureCores(ctx context.Context, r *runner, g *goal) error {
	binary := filepath.Join(r.dir, "actors.test")
	if output, err := exec.CommandContext(ctx, "go", "test", "-c", "-o", binary, "./actors").CombinedOutput(); err != nil {
		return &missingError{"go", fmt.Sprintf("the benchmark of package actors cannot be compiled here: %v %.300s", err, output)}
	}
	shared := measurement{Name: "speed-up of admission and ranking", Unit: "×", SidesUnit: "ns", Sides: map[string][]float64{}}
	control := measurement{Name: "speed-up of a control that shares nothing", Unit: "×"}
	for range r.options.Rounds {
		cmd := exec.CommandContext(ctx, binary, "-test.run", "^$", "-test.bench", "^"+coresBenchmark+"$/^(both|control)$",
			"-test.cpu", "1,2", "-test.benchtime", r.options.Measure.String())
		cmd.Dir = "actors"
		output, err := cmd.CombinedOutput()
		times := benchmarkTimes(string(output))
		if err != nil || len(times) != 4 {
			return fmt.Errorf("run %s with 1 and 2 processors: %w", coresBenchmark, errors.Join(err, fmt.Errorf("its output: %.500s", output)))
		}
		single, dual := times["both"], times["both-2"]
		shared.Rounds, control.Rounds = append(shared.Rounds, single/dual), append(control.Rounds, times["control"]/times["control-2"])
		shared.Sides["one"], shared.Sides["two"] = append(shared.Sides["one"], single), append(shared.Sides["two"], dual)
	}
	g.require(shared, "≥", 1.8)
	g.add(control)
	return nil
}

// benchmarkTimes parses the output of a benchmark. It returns the nanoseconds per operation of each sub-benchmark.
func benchmarkTimes(output string) map[string]float64 {
	times := map[string]float64{}
	for line := range strings.Lines(output) {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[3] != "ns/op" {
			continue
		}
		if ns, err := strconv.ParseFloat(fields[2], 64); err == nil {
			times[strings.TrimPrefix(fields[0], coresBenchmark+"/")] = ns
		}
	}
	return times
}

// measureModes compares the node with the bare server in three modes: a new connection for each request, pipelined
// requests, and TLS.
func measureModes(ctx context.Context, r *runner, g *goal) error {
	bare, err := r.startBaseline(ctx, bareName, mixBestRates)
	if err != nil {
		return err
	}
	for _, mode := range []loadMode{newConnections, pipelined} {
		node := side{server: r.node, keys: r.fixture.keys, mix: mixBestRates, mode: mode}
		baseline := node
		baseline.server = bare
		pairs, err := r.compare(ctx, node, baseline)
		if err != nil {
			return err
		}
		g.addComparison(pairs, bareName, string(mode), 1, 0)
	}
	size := standardSize()
	size.accounts = r.options.Accounts
	fix, err := newFixture(filepath.Join(r.dir, "tls"), size)
	if err == nil {
		fix.certificate, err = newCertificate(r.dir)
	}
	if err != nil {
		return err
	}
	node, err := r.track(r.startNode(ctx, fix))
	if err != nil {
		return err
	}
	bareTLS, err := r.track(startBare(ctx, r.self, r.node, r.fixture.keys[0], mixBestRates, fix.certificate, serverCore))
	if err != nil {
		return err
	}
	pairs, err := r.compare(ctx, side{server: node, keys: fix.keys, mix: mixBestRates}, side{server: bareTLS, keys: fix.keys, mix: mixBestRates})
	if err == nil {
		g.addComparison(pairs, bareName, "TLS", 1, 0)
	}
	return err
}
