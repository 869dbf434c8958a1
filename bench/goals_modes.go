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
)

// Loads of the goals with many accounts.
const (
	leasedAccounts = 20_000
	firstAccounts  = 30_000
	leaseRate      = 25_000 // requests per second
	// firstMeasure is so short that few accounts send a second request.
	firstMeasure = 400 * time.Millisecond
)

// startSide makes the data of a node below the scratch directory and starts the node on it.
func (l *runner) startSide(ctx context.Context, dir string, size fixtureSize, flags ...string) (side, error) {
	made, err := newFixture(filepath.Join(l.dir, dir), size)
	if err != nil {
		return side{}, err
	}
	node, err := l.track(l.startNode(ctx, made, flags...))
	return side{server: node, keys: made.keys, mix: mixBest}, err
}

// startLeased starts a node with many accounts, all of which are loaded.
func (l *runner) startLeased(ctx context.Context, dir, lease string) (side, error) {
	size := standardSize()
	size.accounts, size.days = leasedAccounts, 1
	s, err := l.startSide(ctx, dir, size, "--lease", lease)
	if err == nil {
		err = l.useAllAccounts(ctx, s.server, s.keys)
	}
	return s, err
}

func measureF1c(ctx context.Context, l *runner, g *goal) error {
	node, err := l.startLeased(ctx, "leased-16", "16")
	if err != nil {
		return err
	}
	bare, err := l.startBaseline(ctx, bareName, mixBest)
	if err != nil {
		return err
	}
	pairs, err := l.compare(ctx, node, side{server: bare, keys: node.keys, mix: mixBest})
	if err == nil {
		g.against(pairs, bareName, "20,000 accounts", 1, 1)
	}
	return err
}

// measureF1d starts the node again in each round, so that most requests are the first of their account.
func measureF1d(ctx context.Context, l *runner, g *goal) error {
	size := standardSize()
	size.accounts, size.days = firstAccounts, 1
	made, err := newFixture(filepath.Join(l.dir, "first"), size)
	if err != nil {
		return err
	}
	bare, err := l.startBaseline(ctx, bareName, mixBest)
	if err != nil {
		return err
	}
	var pairs []pair
	for range l.options.Rounds {
		node, err := l.startNode(ctx, made, "--quota-day", "1000", "--quota-minute", "60", "--lease", "16")
		if err != nil {
			return err
		}
		var p pair
		if p.a, err = l.firstRequests(ctx, node, made.keys); err == nil {
			p.b, err = l.firstRequests(ctx, bare, made.keys)
		}
		if err = errors.Join(err, node.stop()); err != nil {
			return err
		}
		pairs = append(pairs, p)
	}
	g.against(pairs, bareName, "first requests", 0.80, 1.25)
	return nil
}

// firstRequests sends requests for one account after the other.
func (l *runner) firstRequests(ctx context.Context, on *server, keys []string) (sample, error) {
	source := &perAccount{keys: keys, mix: newMix(benchHost, nil, mixes()[mixBest])}
	c := &clients{requests: source, connections: l.options.Connections}
	return l.sample(ctx, on, &load{groups: []*clients{c}, measure: min(l.options.Measure, firstMeasure)})
}

// measureF5w compares a node whose leases are used up every few seconds with one whose leases last.
func measureF5w(ctx context.Context, l *runner, g *goal) error {
	writing, err := l.startLeased(ctx, "writing", "16")
	if err != nil {
		return err
	}
	quiet, err := l.startLeased(ctx, "quiet", nodeLease)
	if err != nil {
		return err
	}
	writing.rate, quiet.rate = leaseRate, leaseRate
	pairs, err := l.compare(ctx, writing, quiet)
	if err != nil {
		return err
	}
	names := [2]string{"leases of 16", "leases of " + nodeLease}
	g.require(ratioOf(fmt.Sprintf("p99 at %d requests/s", leaseRate), "ns", pairs, names, p99), "≤", 1.5)
	g.add(ratioOf("median", "ns", pairs, names, p50))
	return nil
}

// coresBenchmark is the benchmark of admission and ranking in package actors, and of a control that shares nothing.
const coresBenchmark = "BenchmarkCores"

// measureF13 runs the hot path's own benchmark with one and with two processors, alternately.
func measureF13(ctx context.Context, l *runner, g *goal) error {
	compiled := filepath.Join(l.dir, "actors.test")
	if output, err := exec.CommandContext(ctx, "go", "test", "-c", "-o", compiled, "./actors").CombinedOutput(); err != nil {
		return &missingError{"go", fmt.Sprintf("the benchmark of package actors cannot be compiled here: %v %.300s", err, output)}
	}
	both := measure{Name: "speed-up of admission and ranking", Unit: "×", SidesUnit: "ns", Sides: map[string][]float64{}}
	control := measure{Name: "speed-up of a control that shares nothing", Unit: "×"}
	for range l.options.Rounds {
		cmd := exec.CommandContext(ctx, compiled, "-test.run", "^$", "-test.bench", "^"+coresBenchmark+"$/^(both|control)$",
			"-test.cpu", "1,2", "-test.benchtime", l.options.Measure.String())
		cmd.Dir = "actors"
		output, err := cmd.CombinedOutput()
		times := benchmarkTimes(string(output))
		if err != nil || len(times) != 4 {
			return fmt.Errorf("run %s with 1 and 2 processors: %w", coresBenchmark, errors.Join(err, fmt.Errorf("its output: %.500s", output)))
		}
		one, two := times["both"], times["both-2"]
		both.Rounds, control.Rounds = append(both.Rounds, one/two), append(control.Rounds, times["control"]/times["control-2"])
		both.Sides["one"], both.Sides["two"] = append(both.Sides["one"], one), append(both.Sides["two"], two)
	}
	g.require(both, "≥", 1.8)
	g.add(control)
	return nil
}

// benchmarkTimes returns the nanoseconds per operation in the output of a benchmark, by the name of the sub-benchmark.
func benchmarkTimes(output string) map[string]float64 {
	times := map[string]float64{}
	for line := range strings.Lines(output) {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[3] != "ns/op" {
			continue
		}
		if each, err := strconv.ParseFloat(fields[2], 64); err == nil {
			times[strings.TrimPrefix(fields[0], coresBenchmark+"/")] = each
		}
	}
	return times
}

// measureF14 compares the node with the bare server without keep-alive, over TLS, and with pipelined requests.
func measureF14(ctx context.Context, l *runner, g *goal) error {
	bare, err := l.startBaseline(ctx, bareName, mixBest)
	if err != nil {
		return err
	}
	for _, mode := range []loadMode{newConnections, pipelined} {
		node := side{server: l.node, keys: l.fixture.keys, mix: mixBest, mode: mode}
		other := node
		other.server = bare
		pairs, err := l.compare(ctx, node, other)
		if err != nil {
			return err
		}
		g.against(pairs, bareName, string(mode), 1, 0)
	}
	size := standardSize()
	size.accounts = l.options.Accounts
	made, err := newFixture(filepath.Join(l.dir, "tls"), size)
	if err == nil {
		made.certificate, err = newCertificate(l.dir)
	}
	if err != nil {
		return err
	}
	node, err := l.track(l.startNode(ctx, made))
	if err != nil {
		return err
	}
	secure, err := l.track(startBare(ctx, l.self, l.node, l.fixture.keys[0], mixBest, made.certificate, serverCore))
	if err != nil {
		return err
	}
	pairs, err := l.compare(ctx, side{server: node, keys: made.keys, mix: mixBest}, side{server: secure, keys: made.keys, mix: mixBest})
	if err == nil {
		g.against(pairs, bareName, "TLS", 1, 0)
	}
	return err
}
