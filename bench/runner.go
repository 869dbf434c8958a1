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
	serverCore = 0 // all servers run here, one at a time under load
	loadCore   = 1 // the load generator runs here
)

// mallocsMetric counts the objects that a node has allocated.
const mallocsMetric = "go_memstats_mallocs_total"

// runner measures goals: its data, its running servers and its results.
type runner struct {
	options  runOptions
	tasard   string // path of the node's program
	self     string // path of the bench, for its subcommands
	dir      string // scratch directory, removed at the end
	progress io.Writer
	report   report

	fixture *fixture
	node    *server   // on the fixture
	started []*server // of the current goal
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

// close stops all servers and removes the scratch directory.
func (l *runner) close() error {
	return errors.Join(l.stopStarted(), l.stopNode(), os.RemoveAll(l.dir))
}

// stopStarted stops the servers of a goal, the last one first.
func (l *runner) stopStarted() error {
	var all []error
	for _, s := range slices.Backward(l.started) {
		all = append(all, s.stop())
	}
	l.started = nil
	return errors.Join(all...)
}

// stopNode stops the node with the standard data.
func (l *runner) stopNode() (err error) {
	if l.node != nil {
		err, l.node = l.node.stop(), nil
	}
	return err
}

// track registers a started server to be stopped.
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

// prepare starts a node on the standard data, unless one runs.
func (l *runner) prepare(ctx context.Context) (err error) {
	if l.fixture == nil {
		size := standardSize()
		size.accounts = l.options.Accounts
		if l.fixture, err = newFixture(filepath.Join(l.dir, "standard"), size); err != nil {
			return err
		}
	}
	if l.node == nil {
		l.node, err = l.startNode(ctx, l.fixture)
	}
	return err
}

// side is a server and the load that it gets.
type side struct {
	*server
	keys []string
	mix  string
	rate float64
	mode loadMode
}

// loadMode is how clients use their connections; "" keeps them and sends one request at a time.
type loadMode string

const (
	newConnections loadMode = "a new connection for each request"
	pipelined      loadMode = "pipelined 16 deep"
	pipelineDepth           = 16
	// newConnectionsNet and newConnectionsEach spread new connections over source addresses, which have a limited
	// number of ports.
	newConnectionsNet, newConnectionsEach = 9, 8
)

// sample is the result of one load, with its cost to the server.
type sample struct {
	results
	cpu       time.Duration // of the server's processes
	mallocs   float64       // objects allocated by a node
	generator time.Duration // CPU time of the load generator
}

// pair is one round: both sides, directly one after the other.
type pair struct{ a, b sample }

// Names of the baselines.
const (
	bareName       = "bare"
	nginxName      = "nginx"
	nginxTunedName = "nginx, tuned"
	postgresName   = "postgres"
)

// startBaseline starts a baseline on the servers' core, for one mix.
func (l *runner) startBaseline(ctx context.Context, name, mix string) (*server, error) {
	if err := l.prepare(ctx); err != nil {
		return nil, err
	}
	key := l.fixture.keys[0]
	switch name {
	case nginxName, nginxTunedName:
		return l.track(startNginx(ctx, l.node, key, &mixes()[mix][0], name == nginxTunedName, serverCore))
	case postgresName:
		return l.track(startPostgres(ctx, l.self, l.node, key, serverCore))
	}
	return l.track(startBare(ctx, l.self, l.node, key, mix, nil, serverCore))
}

// compareBaseline compares the node with a baseline on one mix.
func (l *runner) compareBaseline(ctx context.Context, mix, name string) ([]pair, error) {
	other, err := l.startBaseline(ctx, name, mix)
	if err != nil {
		return nil, err
	}
	return l.compare(ctx, side{server: l.node, keys: l.fixture.keys, mix: mix}, side{server: other, keys: l.fixture.keys, mix: mix})
}

// compare measures two sides alternately, so that other activity on the machine affects both, in changing order. An
// answer other than 200 is an error, because something else would be measured.
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

// measure puts a load on one side once.
func (l *runner) measure(ctx context.Context, s side, round int) (found sample, err error) {
	o := &l.options
	err = retry(ctx, func() (err error) {
		c, templates := &clients{connections: o.Connections, rate: s.rate}, mixes()[s.mix]
		switch s.mode {
		case newConnections:
			c.reconnects, c.net, c.perAddress = true, newConnectionsNet, newConnectionsEach
			for i := range templates {
				templates[i].headers += "Connection: close\r\n"
			}
		case pipelined:
			c.pipeline = pipelineDepth
		}
		c.requests = newMix(benchHost, s.keys, templates)
		found, err = l.sample(ctx, s.server, &load{groups: []*clients{c}, seed: uint64(round), warmup: o.Warmup, measure: o.Measure})
		return err
	})
	return found, err
}

// measureAttempts is how often a measurement is tried.
const measureAttempts = 5

// retry repeats a measurement that a busy machine made fail: a node that gets no CPU time for a while sheds load.
func retry(ctx context.Context, try func() error) (err error) {
	for range measureAttempts {
		if err = try(); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// sample runs a load of one kind of client and measures what it cost the server.
func (l *runner) sample(ctx context.Context, on *server, order *load) (s sample, err error) {
	order.address, order.tls = on.address, on.tls
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

// addUsage adds the server's resource usage so far, or subtracts it if sign is -1.
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

// scrapeAllocations returns how many objects the node allocates to answer a request for its metrics.
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

// ratioOf returns the ratio of a figure between the first and the second side, round by round.
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

// median returns the median of at least one figure.
func median(figures []float64) float64 {
	sorted := slices.Sorted(slices.Values(figures))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
