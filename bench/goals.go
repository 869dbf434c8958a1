//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// bounds are the required ratios of the node to the other server. 0 means no requirement.
type bounds struct {
	rate float64 // minimum, of requests per second
	cpu  float64 // maximum, of CPU time per request
	p99  float64 // maximum, of the 99th percentile of latency
}

// scenario is one comparison of a performance goal. All goals are measured with the default flags of tasard serve,
// except for those that nodeFlags names.
type scenario struct {
	goal, title string
	mix         string // name of the requests; see mix.go
	baseline    string // name of the other server; "" means bareName
	baseMix     string // requests to the other server; "" means mix
	mode        loadMode
	connections int  // 0 means that of -connections
	accounts    int  // 0 means accountCount
	half        bool // both servers get half of the requests per second that the other server can answer
	bounds
	run func(ctx context.Context, r *runner, s *scenario) error // measures the goal; nil means compareServers
}

func scenarios() []scenario {
	return []scenario{
		{goal: "F1", title: "one head, again and again", mix: mixBest, bounds: bounds{1, 1, 0}},
		{goal: "F1r", title: "a header that varies", mix: mixVarying, bounds: bounds{0.90, 1.10, 0}},
		{goal: "F1p", title: "behind a trusted proxy", mix: mixProxied, bounds: bounds{0.90, 1.15, 0}},
		{goal: "F1n", title: "If-None-Match that matches, 304", mix: mixMatching, bounds: bounds{0.90, 1.15, 0}},
		{goal: "F1c", title: "20,000 accounts awake", mix: mixVarying, accounts: 20_000, bounds: bounds{0.90, 1.15, 0}},
		{goal: "F1d", title: "first requests of 30,000 accounts", mix: mixVarying, accounts: 30_000, bounds: bounds{0.60, 1.70, 2}, run: measureFirstRequests},
		{goal: "F2", title: "a full page", mix: mixFull, bounds: bounds{1, 0, 0}},
		{goal: "F2", title: "a full page, gzip", mix: mixGzip, bounds: bounds{1, 0, 0}},
		{goal: "F3", title: "convert, a new amount each time", mix: mixConvert, bounds: bounds{0.85, 1.15, 0}},
		{goal: "F3g", title: "convert with gzip, against bare without", mix: mixConvertGzip, baseMix: mixConvert, bounds: bounds{0.75, 1.50, 0}},
		{goal: "F3", title: "rates", mix: mixRates, bounds: bounds{1, 0, 0}},
		{goal: "F3", title: "history", mix: mixHistory, bounds: bounds{1, 0, 0}},
		{goal: "F3", title: "currencies", mix: mixCurrencies, bounds: bounds{1, 0, 0}},
		{goal: "F3", title: "institutions", mix: mixInstitutions, bounds: bounds{1, 0, 0}},
		{goal: "F3", title: "one institution", mix: mixInstitution, bounds: bounds{1, 0, 0}},
		{goal: "F5", title: "latency at half of bare's capacity", mix: mixVarying, half: true, bounds: bounds{0, 0, 1.2}},
		{goal: "F6", title: "nginx, as commonly set up", mix: mixVarying, baseline: nginxName, bounds: bounds{1.15, 0, 0}},
		{goal: "F6", title: "nginx, at its best", mix: mixVarying, baseline: nginxTunedName, bounds: bounds{0.80, 0, 0}},
		{goal: "F12", title: "reads during a refresh, two processors", mix: mixVarying, bounds: bounds{0, 0, 2}, run: measureRefresh},
		{goal: "F14", title: "a new connection for each request", mix: mixBest, mode: newConnections, bounds: bounds{1, 0, 0}},
		{goal: "F14", title: "pipelined 16 deep", mix: mixBest, mode: pipelined, bounds: bounds{1, 0, 0}},
		{goal: "F14", title: "TLS", mix: mixVarying, mode: encrypted, bounds: bounds{1, 0, 0}},
		{goal: "F16", title: "512 connections", mix: mixVarying, connections: 512, bounds: bounds{0.90, 0, 1.5}},
		{goal: "F16", title: "1,000 connections", mix: mixVarying, connections: 1000, bounds: bounds{0.90, 0, 1.5}},
		{goal: "F16", title: "4,000 connections", mix: mixVarying, connections: 4000, bounds: bounds{0.90, 0, 1.5}},
	}
}

// selectGoals returns the scenarios for a list of goal IDs such as F1,F12 (see scenarios), or all scenarios for "".
func selectGoals(list string) (selected []scenario, err error) {
	names, known := strings.Split(strings.ReplaceAll(list, " ", ""), ","), []string{}
	for _, s := range scenarios() {
		known = append(known, s.goal)
		if list == "" || slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, s.goal) }) {
			selected = append(selected, s)
		}
	}
	for _, name := range names {
		if list != "" && !slices.ContainsFunc(known, func(goal string) bool { return strings.EqualFold(name, goal) }) {
			return nil, fmt.Errorf("-goals: no goal %q; there are %s", name, strings.Join(slices.Compact(known), ", "))
		}
	}
	return selected, nil
}

// measureGoal measures the figures of a scenario and prints them. If a program that the measurement needs is not
// installed, it prints that the goal is skipped.
func (r *runner) measureGoal(ctx context.Context, s *scenario, out io.Writer) error {
	run := s.run
	if run == nil {
		run = compareServers
	}
	r.measured = nil
	err := errors.Join(run(ctx, r, s), r.stopStarted())
	switch {
	case errors.Is(err, errNoNginx):
		_, err = fmt.Fprintf(out, "| %s | %s | not measured: %v | | |\n", s.goal, s.title, errNoNginx)
		return err
	case err != nil:
		return fmt.Errorf("%s, %s: %w", s.goal, s.title, err)
	}
	for i := range r.measured {
		f := &r.measured[i]
		if _, err := io.WriteString(out, f.row(s)); err != nil {
			return err
		}
		if !f.met() && !slices.Contains(r.missed, s.goal) {
			r.missed = append(r.missed, s.goal)
		}
	}
	return nil
}

// measurement is a figure: the median of its rounds, each a ratio of the node to another server.
type measurement struct {
	name   string
	rounds []float64
	want   float64 // bound; 0 means none
	least  bool    // the measurement must be at least want; otherwise at most
	sides  string  // medians of both servers
}

// interval returns the confidence interval of the median, of about 95 %: the sign test gives the ranks n/2 ± √n.
func (f *measurement) interval() (low, high float64) {
	sorted, count := slices.Sorted(slices.Values(f.rounds)), float64(len(f.rounds))
	rank := int(max(0, count/2-math.Sqrt(count)))
	return sorted[rank], sorted[len(sorted)-1-rank]
}

// met reports whether the median is within the bound. A ratio whose interval contains its bound of 1 shows no
// difference between the servers, so it meets the bound. NaN meets no bound.
func (f *measurement) met() bool {
	value := median(f.rounds)
	if low, high := f.interval(); f.want == 1 && low <= 1 && high >= 1 {
		return true
	}
	return f.want == 0 || f.least && value >= f.want || !f.least && value <= f.want
}

// row formats the measurement as a row of a Markdown table: with the interval of the median and the bound.
func (f *measurement) row(s *scenario) string {
	low, high := f.interval()
	bound := ""
	if f.want != 0 {
		sign, verdict := "≤", "met"
		if f.least {
			sign = "≥"
		}
		if !f.met() {
			verdict = "**missed**"
		}
		bound = fmt.Sprintf("%s %s, %s", sign, formatValue(f.want, ratio), verdict)
	}
	return fmt.Sprintf("| %s | %s: %s | %s (%s–%s) | %s | %s |\n", s.goal, s.title, f.name, formatValue(median(f.rounds), ratio),
		formatValue(low, ""), formatValue(high, ""), bound, f.sides)
}

const ratio = "×" // the unit of a measurement

// formatValue formats a number with its unit, with three significant digits or more.
func formatValue(value float64, unit string) string {
	places := 0
	for size := math.Abs(value); size > 0 && size < 100 && places < 3; size *= 10 {
		places++
	}
	return strconv.FormatFloat(value, 'f', places, 64) + unit
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
