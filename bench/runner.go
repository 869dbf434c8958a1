//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	serverCore = 0 // every server runs there, in turn
	loadCore   = 1 // the load runs there
)

// mallocsMetric counts the objects that a node has allocated.
const mallocsMetric = "go_memstats_mallocs_total"

// runner is where goals are measured: the data, the servers that run, and what was found.
type runner struct {
	options  runOptions
	tasard   string // the node's program
	self     string // the bench's own, for its hidden subcommands
	dir      string // scratch space, removed at the end
	progress io.Writer
	report   report

	fixture *fixture
	node    *server
	started []*server // to be stopped, last first
}

// newRunner makes a scratch directory.
func newRunner(options runOptions, tasard string, progress io.Writer) (*runner, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the bench's own program: %w", err)
	}
	dir, err := os.MkdirTemp("", "tasard-bench-")
	if err != nil {
		return nil, fmt.Errorf("make a scratch directory: %w", err)
	}
	return &runner{options: options, tasard: tasard, self: self, dir: dir, progress: progress, report: newReport(options)}, nil
}

// close stops what runs and removes what was made.
func (l *runner) close() error { return errors.Join(l.stopFrom(0), os.RemoveAll(l.dir)) }

// stopFrom stops the servers that were started from a place on.
func (l *runner) stopFrom(place int) error {
	var all []error
	for _, s := range slices.Backward(l.started[place:]) {
		all = append(all, s.stop())
	}
	l.started = l.started[:place]
	return errors.Join(all...)
}

// track has a server that was started stopped at the end.
func (l *runner) track(s *server, err error) (*server, error) {
	if err == nil {
		l.started = append(l.started, s)
	}
	return s, err
}

// startNode starts a node on the servers' core.
func (l *runner) startNode(ctx context.Context, f *fixture, flags ...string) (*server, error) {
	return startNode(ctx, []string{l.tasard}, f, serverCore, flags...)
}

// prepare makes the data that most goals are measured with, and starts the node on it.
func (l *runner) prepare(ctx context.Context) error {
	if l.node != nil {
		return nil
	}
	size := standardSize()
	size.accounts = l.options.Accounts
	var err error
	if l.fixture, err = newFixture(filepath.Join(l.dir, "standard"), size); err != nil {
		return err
	}
	l.node, err = l.track(l.startNode(ctx, l.fixture))
	return err
}

// side is a server with what it is asked.
type side struct {
	*server
	keys []string
	mix  string
	rate float64
}

// sample is what a load met, with what it cost the server.
type sample struct {
	results
	cpu       time.Duration // of the server's processes
	mallocs   float64       // objects that a node allocated meanwhile
	generator time.Duration // CPU time of the load itself
}

// pair is one round: both sides, one directly after the other.
type pair struct{ a, b sample }

// startBaseline starts a yardstick on the servers' core, for one mix.
func (l *runner) startBaseline(ctx context.Context, name, mix string) (*server, error) {
	if err := l.prepare(ctx); err != nil {
		return nil, err
	}
	key := l.fixture.keys[0]
	switch name {
	case "nginx":
		return l.track(startNginx(ctx, l.node, key, &mixes()[mix][0], serverCore))
	case "postgres":
		return l.track(startPostgres(ctx, l.self, l.node, key, serverCore))
	}
	return l.track(startBare(ctx, l.self, l.node, key, mix, serverCore))
}

// compareBaseline compares the node with another server on one mix.
func (l *runner) compareBaseline(ctx context.Context, mix, name string) ([]pair, error) {
	other, err := l.startBaseline(ctx, name, mix)
	if err != nil {
		return nil, err
	}
	pairs, err := l.compare(ctx, side{l.node, l.fixture.keys, mix, 0}, side{other, l.fixture.keys, mix, 0})
	return pairs, errors.Join(err, l.stopFrom(len(l.started)-1))
}

// compare measures two sides in turn, round by round, so that whatever else the machine does hits both. The order changes with each
// round. Answers other than 200 are an error: what was measured would not be what was asked for.
func (l *runner) compare(ctx context.Context, a, b side) (pairs []pair, err error) {
	for round := range l.options.Rounds {
		var p pair
		order, sides := []*sample{&p.a, &p.b}, []side{a, b}
		if round%2 == 1 {
			slices.Reverse(order)
			slices.Reverse(sides)
		}
		for i, into := range order {
			if *into, err = l.measure(ctx, sides[i], round); err != nil {
				return nil, err
			}
		}
		pairs = append(pairs, p)
	}
	return pairs, nil
}

// measure puts load on one side once.
func (l *runner) measure(ctx context.Context, s side, round int) (found sample, err error) {
	o := &l.options
	err = retry(ctx, func() (err error) {
		g := &clients{requests: newMix(benchHost, s.keys, mixes()[s.mix]), connections: o.Connections, rate: s.rate}
		found, err = l.sample(ctx, s.server, &load{groups: []*clients{g}, seed: o.Seed + uint64(round), warmup: o.Warmup, measure: o.Measure})
		return err
	})
	return found, err
}

// measureAttempts is how often a measurement is tried.
const measureAttempts = 5

// retry tries again what a busy machine made fail: a node that gets no processor for a while sheds load.
func retry(ctx context.Context, try func() error) (err error) {
	for range measureAttempts {
		if err = try(); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// sample runs a load of one group, and tells what it cost the server.
func (l *runner) sample(ctx context.Context, on *server, order *load) (s sample, err error) {
	order.address = on.address
	order.begins = func() error { return s.addUsage(ctx, on, -1) }
	order.ends = func() error { return s.addUsage(ctx, on, +1) }
	if err := pinToCore(loadCore, func() error { return order.run(ctx) }); err != nil {
		return s, fmt.Errorf("%s: %w", on.name, err)
	}
	s.results, s.generator = order.groups[0].results, order.generator
	if good := s.statuses[200]; good < s.answers || s.lost > 0 || s.answers == 0 {
		return s, fmt.Errorf("load on %s: want answers 200, found %v, and %d lost", on.name, s.statuses, s.lost)
	}
	return s, nil
}

// addUsage adds what the server has used up until now, or with a sign of -1 takes it off.
func (s *sample) addUsage(ctx context.Context, on *server, sign int) error {
	spent, err := on.cpu()
	if err == nil && on.data != "" {
		var objects float64
		objects, err = on.metric(ctx, mallocsMetric)
		s.mallocs += float64(sign) * objects
	}
	s.cpu += time.Duration(sign) * spent
	return err
}

// scrapeAllocations is how many objects it costs the node to be asked for its allocations.
func (l *runner) scrapeAllocations(ctx context.Context) (float64, error) {
	var counts [3]float64
	for i := range counts {
		var err error
		if counts[i], err = l.node.metric(ctx, mallocsMetric); err != nil {
			return 0, err
		}
	}
	return counts[2] - counts[1], nil
}

// The figures of a sample.
func requestsPerSecond(s *sample) float64 { return float64(s.answers) / s.elapsed.Seconds() }
func cpuPerRequest(s *sample) float64     { return float64(s.cpu.Nanoseconds()) / float64(s.answers) }
func p50(s *sample) float64               { return float64(s.latency.ValueAtQuantile(50)) }
func p99(s *sample) float64               { return float64(s.latency.ValueAtQuantile(99)) }
func latencyMax(s *sample) float64        { return float64(s.latency.Max()) }

// ratioOf is a figure of the first side as a part of that of the second: the median of the rounds' ratios.
func ratioOf(name, unit string, pairs []pair, names [2]string, figure func(*sample) float64) measure {
	m := measure{Name: name, Unit: "×", SidesUnit: unit, Sides: map[string][]float64{}}
	for i := range pairs {
		a, b := figure(&pairs[i].a), figure(&pairs[i].b)
		m.Rounds = append(m.Rounds, a/b)
		m.Sides[names[0]] = append(m.Sides[names[0]], a)
		m.Sides[names[1]] = append(m.Sides[names[1]], b)
	}
	return m
}

// median of figures, of which there is at least one.
func median(figures []float64) float64 {
	sorted := slices.Sorted(slices.Values(figures))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
