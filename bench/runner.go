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

	"github.com/tasard/tasard/bench/load"
)

const (
	serverCore = 0 // core of all servers; only one of them at a time has load
	loadCore   = 1 // core of the load generator
)

// mallocsMetric counts the objects that a node has allocated.
const mallocsMetric = "go_memstats_mallocs_total"

// runner measures the figures of performance goals and collects them.
type runner struct {
	options  runOptions
	tasard   string // path of the node's program
	self     string // path of this program, to run its subcommands
	dir      string // scratch directory, removed at the end
	progress io.Writer
	goals    []goal // measured so far

	fixture *fixture
	node    *server   // the node that serves fixture
	started []*server // other servers of the current goal
	stalls  int       // number of rounds of the current goal that were measured again, because they stalled
}

func newRunner(options runOptions, tasard string, progress io.Writer) (*runner, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the bench's own program: %w", err)
	}
	dir, err := os.MkdirTemp("", "tasard-bench-")
	if err != nil {
		return nil, fmt.Errorf("make a scratch directory: %w", err)
	}
	return &runner{options: options, tasard: tasard, self: self, dir: dir, progress: progress}, nil
}

// close stops all servers and removes the scratch directory.
func (r *runner) close() error {
	return errors.Join(r.stopStarted(), r.stopNode(), os.RemoveAll(r.dir))
}

// stopStarted stops the servers that were started for a goal, in reverse order.
func (r *runner) stopStarted() error {
	var errs []error
	for _, s := range slices.Backward(r.started) {
		errs = append(errs, s.stop())
	}
	r.started = nil
	return errors.Join(errs...)
}

func (r *runner) stopNode() (err error) {
	if r.node != nil {
		err, r.node = r.node.stop(), nil
	}
	return err
}

// track adds a server that has been started to r.started, so that it will be stopped. It returns its arguments.
func (r *runner) track(s *server, err error) (*server, error) {
	if err == nil {
		r.started = append(r.started, s)
	}
	return s, err
}

func (r *runner) startNode(ctx context.Context, f *fixture, flags ...string) (*server, error) {
	return startNode(ctx, []string{r.tasard}, f, serverCore, flags...)
}

// prepare creates the standard data and starts a node on it. It does nothing if both exist.
func (r *runner) prepare(ctx context.Context) (err error) {
	if r.fixture == nil {
		size := standardSize()
		size.accounts = r.options.Accounts
		if r.fixture, err = newFixture(filepath.Join(r.dir, "standard"), size); err != nil {
			return err
		}
	}
	if r.node == nil {
		r.node, err = r.startNode(ctx, r.fixture)
	}
	return err
}

// side is one of two servers in a comparison, and the load that it gets.
type side struct {
	*server
	keys []string
	mix  string
	rate float64
	mode loadMode
	seed uint64 // of the random requests in the first round
}

// loadMode is how clients use connections. In mode "" a client keeps its connection open and sends one request at a
// time.
type loadMode string

const (
	newConnections loadMode = "a new connection for each request"
	pipelined      loadMode = "pipelined 16 deep"
	pipelineDepth           = 16
	// In mode newConnections, clients have many source addresses, because each address has a limited number of ports.
	newConnectionsSubnet, newConnectionsPerAddress = 9, 8
)

// sample is the result of one load, and the resources that the server used meanwhile.
type sample struct {
	load.Results
	cpu          time.Duration // CPU time of the server's processes
	mallocs      float64       // number of objects that a node allocated; 0 for another server
	generatorCPU time.Duration // CPU time of the load generator
	stalled      time.Duration // time in which the machine did something else
}

// pair has the samples of both sides in one round. The load on the second side follows directly after the load on the
// first side.
type pair struct{ a, b sample }

// Names of the baselines: the servers that the node is compared with.
const (
	bareName       = "bare"
	nginxName      = "nginx"
	nginxTunedName = "nginx, tuned"
	nginxCacheName = "nginx, cache"
	postgresName   = "postgres"
)

// startBaseline starts a baseline for the requests of one mix.
func (r *runner) startBaseline(ctx context.Context, name, mix string) (*server, error) {
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	key := r.fixture.keys[0]
	switch name {
	case nginxName, nginxTunedName:
		return r.track(startNginx(ctx, r.node, key, &mixes()[mix][0], name == nginxTunedName, serverCore))
	case postgresName:
		return r.track(startPostgres(ctx, r.self, r.node, key, serverCore))
	}
	return r.track(startBare(ctx, r.self, r.node, key, mix, nil, serverCore))
}

// compareBaseline starts a baseline and compares the node with it. Both get the requests of one mix (set of requests).
func (r *runner) compareBaseline(ctx context.Context, mix, name string) ([]pair, error) {
	baseline, err := r.startBaseline(ctx, name, mix)
	if err != nil {
		return nil, err
	}
	return r.compare(ctx, side{server: r.node, keys: r.fixture.keys, mix: mix}, side{server: baseline, keys: r.fixture.keys, mix: mix})
}

// compare measures two sides alternately, so that other activity on the machine affects both. The order changes each
// round. A response with a status other than 200 is an error.
func (r *runner) compare(ctx context.Context, a, b side) (pairs []pair, err error) {
	for round := range r.options.Rounds {
		var p pair
		order, sides := []*sample{&p.a, &p.b}, []side{a, b}
		if round%2 == 1 {
			slices.Reverse(order)
			slices.Reverse(sides)
		}
		for i, result := range order {
			if *result, err = r.measure(ctx, sides[i], round); err != nil {
				return nil, err
			}
		}
		pairs = append(pairs, p)
	}
	return pairs, nil
}

// measure generates one load on a side.
func (r *runner) measure(ctx context.Context, s side, round int) (result sample, err error) {
	err = r.retry(ctx, func() (err error) {
		result, err = r.measureOnce(ctx, s, round)
		return err
	})
	return result, err
}

// measureOnce is one attempt of measure. If the machine did something else meanwhile, it returns errStalled and the
// result.
func (r *runner) measureOnce(ctx context.Context, s side, round int) (result sample, err error) {
	o := &r.options
	c, templates := &load.Clients{Connections: o.Connections, Rate: s.rate}, mixes()[s.mix]
	switch s.mode {
	case newConnections:
		c.Reconnects, c.Subnet, c.PerAddress = true, newConnectionsSubnet, newConnectionsPerAddress
		for i := range templates {
			templates[i].headers += "Connection: close\r\n"
		}
	case pipelined:
		c.Pipeline = pipelineDepth
	}
	c.Requests = newMix(benchHost, s.keys, templates)
	result, err = r.sample(ctx, s.server, &load.Generator{Groups: []*load.Clients{c}, Seed: s.seed + uint64(round), Warmup: o.Warmup, Measure: o.Measure})
	if err == nil && result.stalled > o.Measure/stalledPart {
		err = errStalled
	}
	return result, err
}

// stalledPart limits how long a round may stall: so that fewer requests wait than may be slower than the 99th
// percentile, also while those that have waited are answered.
const stalledPart = 250

const measureAttempts = 5

// errStalled means that the machine did something else during a round.
var errStalled = errors.New("the machine was busy")

// retry calls measure until it succeeds, at most measureAttempts times. On a busy machine a node may get no CPU time
// for a while. It then refuses requests, and the measurement fails. A stalled round counts all the same if the goal has
// already had many.
func (r *runner) retry(ctx context.Context, measure func() error) (err error) {
	for range measureAttempts {
		err = measure()
		stalled := errors.Is(err, errStalled)
		switch {
		case stalled && r.stalls < 2*r.options.Rounds:
			r.stalls++
		case stalled:
			return nil
		case err == nil || ctx.Err() != nil:
			return err
		}
	}
	if errors.Is(err, errStalled) {
		return nil
	}
	return err
}

// sample generates a load with one group of clients on a server, and measures the resources that the server uses. If
// the server is a node, sample counts its allocated objects too, but not at a rate: to read the counts makes garbage,
// and its collection would add to the latency.
func (r *runner) sample(ctx context.Context, node *server, l *load.Generator) (s sample, err error) {
	l.Address, l.TLS = node.address, node.tls
	usage := *node
	if l.Groups[0].Rate > 0 {
		usage.data = ""
	}
	l.OnMeasureStart = func() error { return s.beginUsage(ctx, &usage) }
	l.OnMeasureEnd = func() error { return s.endUsage(ctx, &usage) }
	if err := pinToCore(loadCore, func() error { return l.Run(ctx) }); err != nil {
		return s, fmt.Errorf("%s: %w", node.name, err)
	}
	s.Results, s.generatorCPU = l.Groups[0].Results, l.CPU
	s.stalled += l.Stalled
	if okCount := s.Statuses[200]; okCount < s.Responses || s.Lost > 0 || s.Responses == 0 {
		return s, fmt.Errorf("load on %s: want answers 200, found %v, and %d lost", node.name, s.Statuses, s.Lost)
	}
	return s, nil
}

// beginUsage subtracts the CPU time and the allocated objects of the server so far. endUsage adds them at the end, so
// that the difference remains. beginUsage reads the CPU time last, and endUsage reads it first. Reading the objects
// from the node's metrics costs some milliseconds of CPU time, which must not count.
func (s *sample) beginUsage(ctx context.Context, node *server) error {
	objects, err := node.mallocs(ctx)
	if err == nil {
		var cpu time.Duration
		cpu, err = node.cpu()
		s.cpu -= cpu
	}
	s.mallocs -= objects
	s.stalled -= stolenTime()
	return err
}

// endUsage adds the CPU time and the allocated objects of the server since its start (see beginUsage).
func (s *sample) endUsage(ctx context.Context, node *server) error {
	cpu, err := node.cpu()
	if err == nil {
		var objects float64
		objects, err = node.mallocs(ctx)
		s.mallocs += objects
	}
	s.cpu += cpu
	s.stalled += stolenTime()
	return err
}

// mallocs returns the number of objects that the server has allocated, or 0 if the server is not a node.
func (s *server) mallocs(ctx context.Context) (float64, error) {
	if s.data == "" {
		return 0, nil
	}
	return s.metric(ctx, mallocsMetric)
}

// scrapeAllocations returns how many objects the node allocates when its metrics are requested.
func (r *runner) scrapeAllocations(ctx context.Context) (float64, error) {
	var counts [3]float64
	for i := range counts {
		var err error
		if counts[i], err = r.node.metric(ctx, mallocsMetric); err != nil {
			return 0, err
		}
	}
	return counts[2] - counts[1], nil
}

// Figures of a sample. Times are in nanoseconds.
func requestsPerSecond(s *sample) float64 { return float64(s.Responses) / s.Elapsed.Seconds() }
func cpuPerRequest(s *sample) float64     { return float64(s.cpu.Nanoseconds()) / float64(s.Responses) }
func p50(s *sample) float64               { return float64(s.Latency.ValueAtQuantile(50)) }
func p99(s *sample) float64               { return float64(s.Latency.ValueAtQuantile(99)) }

// ratioOf returns, for each round, the figure of the first side divided by the figure of the second.
func ratioOf(name, unit string, pairs []pair, names [2]string, figure func(*sample) float64) measurement {
	m := measurement{Name: name, Unit: "×", SidesUnit: unit, Sides: map[string][]float64{}}
	for i := range pairs {
		a, b := figure(&pairs[i].a), figure(&pairs[i].b)
		m.Rounds = append(m.Rounds, a/b)
		m.Sides[names[0]] = append(m.Sides[names[0]], a)
		m.Sides[names[1]] = append(m.Sides[names[1]], b)
	}
	return m
}

// median returns the median of figures, which must not be empty.
func median(figures []float64) float64 {
	sorted := slices.Sorted(slices.Values(figures))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
