//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	serverCore = 0 // core of all servers; only one of them at a time has load
	loadCore   = 1 // core of the load generator
	anyCore    = -1

	accountCount = 48 // number of accounts whose keys are used
	accountSets  = 8  // sets of them, used in turn, so that no account reaches the largest quota of a minute
)

// runOptions are the flags of bench that affect the figures.
type runOptions struct {
	Rounds, Connections int
	Measure, Warmup     time.Duration
}

// runner measures the figures of performance goals.
type runner struct {
	options  runOptions
	tasard   string        // path of the node's program
	self     string        // path of this program, to run its subcommand bare
	dir      string        // scratch directory, removed at the end
	measured []measurement // of the current scenario
	missed   []string      // IDs of goals with a measurement that misses its bound

	fixtures map[int]*fixture // by number of accounts
	started  []*server        // for the current scenario
}

func newRunner(options runOptions, tasard string) (*runner, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the bench's own program: %w", err)
	}
	dir, err := os.MkdirTemp("", "tasard-bench-")
	if err != nil {
		return nil, fmt.Errorf("make a scratch directory: %w", err)
	}
	return &runner{options: options, tasard: tasard, self: self, dir: dir, fixtures: map[int]*fixture{}}, nil
}

// close stops all servers and removes the scratch directory.
func (r *runner) close() error { return errors.Join(r.stopStarted(), os.RemoveAll(r.dir)) }

// stopStarted stops the servers that were started for a goal, in reverse order.
func (r *runner) stopStarted() error {
	var errs []error
	for _, s := range slices.Backward(r.started) {
		errs = append(errs, s.stop())
	}
	r.started = nil
	return errors.Join(errs...)
}

// track adds a started server to the list for stopStarted.
func (r *runner) track(s *server, err error) (*server, error) {
	if err == nil {
		r.started = append(r.started, s)
	}
	return s, err
}

// fixture returns data with a number of accounts, or with accountSets times accountCount for 0, and the keys to use. It
// creates the data once. Only one node at a time can use them.
func (r *runner) fixture(accounts int) (f *fixture, keys []string, err error) {
	if f = r.fixtures[accounts]; f == nil {
		dir := filepath.Join(r.dir, fmt.Sprintf("data-%d", accounts))
		if f, err = newFixture(dir, cmp.Or(accounts, accountSets*accountCount)); err != nil {
			return nil, nil, err
		}
		r.fixtures[accounts] = f
	}
	if accounts > 0 {
		return f, f.keys, nil
	}
	f.keys = append(f.keys[accountCount:], f.keys[:accountCount]...)
	return f, f.keys[:accountCount], nil
}

// side is one of two servers in a comparison, and the load that it gets.
type side struct {
	*server
	keys        []string
	templates   []requestTemplate
	rate        float64
	mode        loadMode
	connections int
}

// loadMode is how clients use connections. In mode "" a client keeps its connection open and sends one request at a
// time.
type loadMode string

const (
	newConnections loadMode = "a new connection for each request"
	pipelined      loadMode = "pipelined"
	encrypted      loadMode = "TLS"
	pipelineDepth           = 16
	// In mode newConnections, clients have many source addresses, because each address has a limited number of ports.
	newConnectionsSubnet, newConnectionsPerAddress = 9, 8
)

// sample is the result of one load, and the CPU time that the server used meanwhile.
type sample struct {
	results
	cpu time.Duration
}

// pair has the samples of both sides in one round. The load on the second side follows directly after the load on the
// first side.
type pair struct{ a, b sample }

// Names of the baselines: the servers that the node is compared with.
const (
	bareName       = "bare"
	nginxName      = "nginx"
	nginxTunedName = "nginx, tuned"
)

// compareServers measures a scenario that compares the node with another server.
func compareServers(ctx context.Context, r *runner, s *scenario) error {
	node, other, err := r.sides(ctx, s)
	if err != nil {
		return err
	}
	label := ""
	if s.half {
		if other.rate, err = r.halfCapacity(ctx, other); err != nil {
			return err
		}
		node.rate, label = other.rate, fmt.Sprintf("at %.0f requests/s: ", other.rate)
	}
	pairs, err := r.compare(ctx, node, other)
	if err == nil {
		r.addRatios(s, label, pairs, [2]string{"node", other.name})
	}
	return err
}

// sides starts the two servers of a scenario.
func (r *runner) sides(ctx context.Context, s *scenario) (node, other side, err error) {
	f, keys, err := r.fixture(s.accounts)
	if err != nil {
		return node, other, err
	}
	if f.certificate = nil; s.mode == encrypted {
		f.certificate, err = newCertificate(r.dir)
	}
	node = side{keys: keys, templates: mixes()[s.mix], mode: s.mode, connections: s.connections}
	if err == nil {
		node.server, err = r.track(startNode(ctx, r.tasard, f, serverCore, measuredFlags()...))
	}
	if err == nil && s.mix == mixMatching {
		err = node.useETag(ctx)
	}
	if err == nil && s.accounts > 0 {
		err = r.wakeAccounts(ctx, node)
	}
	if err != nil {
		return node, other, err
	}
	other = node
	if s.baseMix != "" {
		other.templates = mixes()[s.baseMix]
	}
	other.server, err = r.startBaseline(ctx, s, node, other.templates)
	return node, other, err
}

// startBaseline starts the server that a scenario compares the node with.
func (r *runner) startBaseline(ctx context.Context, s *scenario, node side, templates []requestTemplate) (*server, error) {
	if s.baseline == nginxName || s.baseline == nginxTunedName {
		return r.track(startNginx(ctx, r.dir, node.server, node.keys[0], &templates[0], s.baseline == nginxTunedName))
	}
	raw, _, err := node.ask(ctx, templates[0].request(node.keys[0]))
	if err != nil {
		return nil, err
	}
	return r.track(startBare(ctx, r.self, filepath.Join(r.dir, "response"), raw, node.certificate))
}

// useETag makes the requests of a side name the ETag of the node's response.
func (s *side) useETag(ctx context.Context) error {
	_, response, err := s.ask(ctx, (&requestTemplate{path: bestPath}).request(s.keys[0]))
	s.templates[0].headers = "If-None-Match: " + string(response.Header.Peek("ETag")) + "\r\n"
	return err
}

// compare measures two sides alternately, so that other activity on the machine affects both. The order changes each
// round.
func (r *runner) compare(ctx context.Context, a, b side) (pairs []pair, err error) {
	for round := range r.options.Rounds {
		var p pair
		order, sides := []*sample{&p.a, &p.b}, []side{a, b}
		if round%2 == 1 {
			slices.Reverse(order)
			slices.Reverse(sides)
		}
		for i, result := range order {
			if *result, err = r.measure(ctx, sides[i]); err != nil {
				return nil, err
			}
		}
		pairs = append(pairs, p)
	}
	return pairs, nil
}

// measure generates one load on a side. A response with another status than the first one had is an error.
func (r *runner) measure(ctx context.Context, s side) (sample, error) {
	g := &generator{Connections: cmp.Or(s.connections, r.options.Connections), Rate: s.rate, Warmup: r.options.Warmup, Measure: r.options.Measure}
	switch s.mode {
	case newConnections:
		g.Reconnects, g.Subnet, g.PerAddress = true, newConnectionsSubnet, newConnectionsPerAddress
		s.templates = slices.Clone(s.templates)
		for i := range s.templates {
			s.templates[i].headers += "Connection: close\r\n"
		}
	case pipelined:
		g.Pipeline = pipelineDepth
	}
	g.Requests = newMix(benchHost, s.keys, s.templates)
	return r.sample(ctx, s.server, g)
}

// sample generates a load on a server, and measures the server's CPU time. A lost request, or a response with another
// status than 200 or 304, is an error.
func (r *runner) sample(ctx context.Context, s *server, g *generator) (result sample, err error) {
	g.Address = s.address
	if s.certificate != nil {
		g.TLS = s.certificate.client
	}
	var before time.Duration
	g.OnMeasure = func() error {
		now, err := s.cpu()
		before, result.cpu = now, now-before // the second call leaves the difference
		return err
	}
	if err := pinToCore(loadCore, func() error { return g.run(ctx) }); err != nil {
		return result, fmt.Errorf("%s: %w", s.name, err)
	}
	result.results = g.results
	if okCount := result.Statuses[200] + result.Statuses[304]; okCount < result.Responses || result.Lost > 0 || result.Responses == 0 {
		return result, fmt.Errorf("load on %s: want answers 200 or 304, found %v, and %d lost", s.name, result.Statuses, result.Lost)
	}
	return result, nil
}

// wakeAccounts sends at least one request for each account.
func (r *runner) wakeAccounts(ctx context.Context, s side) error {
	requests := newMix(benchHost, s.keys, s.templates)
	requests.inTurn = true
	for requests.sent < len(s.keys) {
		if _, err := r.sample(ctx, s.server, &generator{Requests: requests, Connections: r.options.Connections, Measure: time.Second}); err != nil {
			return err
		}
	}
	return nil
}

// Figures of a sample. Times are in nanoseconds.
func requestsPerSecond(s *sample) float64 { return float64(s.Responses) / s.Elapsed.Seconds() }
func cpuPerRequest(s *sample) float64     { return float64(s.cpu.Nanoseconds()) / float64(s.Responses) }
func p99(s *sample) float64               { return float64(s.Latency.ValueAtQuantile(99)) }

// addRatios adds the ratios of two servers in requests per second, CPU time and latency, with the bounds of a scenario.
func (r *runner) addRatios(s *scenario, label string, pairs []pair, names [2]string) {
	for _, of := range []struct {
		name, unit string
		of         func(*sample) float64
		scale      float64
		want       float64
	}{
		{"requests/s", "/s", requestsPerSecond, 1, s.bounds.rate},
		{"CPU time", " µs", cpuPerRequest, 1000, s.bounds.cpu},
		{"p99", " µs", p99, 1000, s.bounds.p99},
	} {
		if of.name == "p99" && pairs[0].b.Latency.TotalCount() == 0 { // answers 304 are not timed
			continue
		}
		var ratios, a, b []float64
		for i := range pairs {
			a, b = append(a, of.of(&pairs[i].a)/of.scale), append(b, of.of(&pairs[i].b)/of.scale)
			ratios = append(ratios, a[i]/b[i])
		}
		r.measured = append(r.measured, measurement{
			name: label + of.name, rounds: ratios, want: of.want, least: of.unit == "/s",
			sides: fmt.Sprintf("%s %s, %s %s", names[0], formatValue(median(a), of.unit), names[1], formatValue(median(b), of.unit)),
		})
	}
}
