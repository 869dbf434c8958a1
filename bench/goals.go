//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// scenario is a performance goal and the function that measures it.
type scenario struct {
	goal, title string
	run         func(ctx context.Context, l *runner, g *goal) error
}

func scenarios() []scenario {
	return []scenario{
		{"F1", "the ten best rates, with a key, against the bare server", measureBestRates},
		{"F1c", "the same with 20,000 accounts and leases of 16", measureLeasedAccounts},
		{"F1d", "the same with 30,000 accounts at the default quotas, on their first request", measureFirstRequests},
		{"F2", "a full page against the bare server", against(rival{mixFull, bareName, 1}, rival{mixGzip, bareName, 1})},
		{"F3", "every other operation against the bare server", against(
			rival{mixConvert, bareName, 0.80}, rival{mixRates, bareName, 1}, rival{mixHistory, bareName, 1},
			rival{mixCurrencies, bareName, 1}, rival{mixInstitutions, bareName, 1}, rival{mixInstitution, bareName, 1})},
		{"F4", "allocations and system calls of a request, warm", measureAllocations},
		{"F5", "latency at half of the bare server's capacity", measureLatency},
		{"F5w", "latency while the leases of 20,000 accounts are written", measureLatencyWithLeases},
		{"F6", "against nginx with the same bytes as a file", against(rival{mixBestRates, nginxName, 1.15}, rival{mixBestRates, nginxTunedName, 0.80})},
		{"F7", "against net/http with PostgreSQL", against(rival{mixBestRates, postgresName, 10})},
		{"F8", "from the start to the first answer", measureStartup},
		{"F9", "memory for accounts that were active today", measureAccountHeap},
		{"F10", "observations imported, validated and durable", measureImport},
		{"F11", "the same page with more institutions, currencies and accounts", measureGrowth},
		{"F12", "reads while an update from every source is imported", measureRefresh},
		{"F13", "two processors against one", measureCores},
		{"F14", "new connections, TLS and pipelining against the bare server in the same mode", measureModes},
		{"F15", "nginx with a cache in front of a node without limits, against the node", measureCache},
	}
}

// selectGoals returns the scenarios for a list of goal IDs such as F1,F12 (see scenarios), or all scenarios for "".
func selectGoals(list string) (selected []scenario, err error) {
	names, known := strings.Split(strings.ReplaceAll(list, " ", ""), ","), []string{}
	for _, s := range scenarios() {
		known = append(known, s.goal)
		i := slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, s.goal) })
		if i >= 0 {
			names = slices.Delete(names, i, i+1)
		}
		if list == "" || i >= 0 {
			selected = append(selected, s)
		}
	}
	if list != "" && len(names) > 0 {
		return nil, fmt.Errorf("-goals: no goal %q; there are %s", names[0], strings.Join(known, ", "))
	}
	return selected, nil
}

// measureGoal measures the figures of a goal, prints them and adds them to r.goals. If a program that the measurement
// needs is not installed, it prints that the goal is skipped.
func (r *runner) measureGoal(ctx context.Context, s scenario, out io.Writer) error {
	_, _ = fmt.Fprintf(out, "\n%s  %s\n", s.goal, s.title)
	g := goal{ID: s.goal, Title: s.title, Date: time.Now().UTC().Format(time.DateOnly), Machine: thisMachine()}
	err := errors.Join(s.run(ctx, r, &g), r.stopStarted())
	var missing *missingError
	switch {
	case errors.As(err, &missing):
		_, err = fmt.Fprintf(out, "  not measured: %v\n", missing)
	case err != nil:
		err = fmt.Errorf("%s, %s: %w", s.goal, s.title, err)
	default:
		r.goals = append(r.goals, g)
		_, err = io.WriteString(out, g.text())
		if r.stalls > 0 && err == nil {
			_, err = fmt.Fprintf(out, "  %d rounds were measured again, because the machine did something else\n", r.stalls)
		}
	}
	r.stalls = 0
	return err
}

// summary returns a line with the number of bounds and the goals that miss one.
func (r *runner) summary() string {
	var bounds int
	var short []string
	for _, g := range r.goals {
		for i := range g.Measures {
			if g.Measures[i].Bound != "" {
				bounds++
			}
			if !g.Measures[i].met() && !slices.Contains(short, g.ID) {
				short = append(short, g.ID)
			}
		}
	}
	return fmt.Sprintf("\n%d bounds; short: %s\n", bounds, cmp.Or(strings.Join(short, ", "), "none"))
}

// addComparison adds two ratios of the node to another server: requests per second, and CPU time of a request. Requests
// per second must be at least wantRate times those of the other server. CPU time must be at most wantCPU times that of
// the other server; if wantCPU is 0, CPU time has no limit.
func (g *goal) addComparison(pairs []pair, other, label string, wantRate, wantCPU float64) {
	names := [2]string{"node", other}
	g.require(ratioOf("requests/s, "+label, "/s", pairs, names, requestsPerSecond), "≥", wantRate)
	cpu := ratioOf("CPU time of a request, "+label, "ns", pairs, names, cpuPerRequest)
	if wantCPU > 0 {
		g.require(cpu, "≤", wantCPU)
	} else {
		g.add(cpu)
	}
}

// rival is a baseline, such as nginx. On the requests of one mix, the node must answer at least wantRate times as many
// requests per second.
type rival struct {
	mix, baseline string
	wantRate      float64
}

// against returns the measurement of a goal that compares the node with baselines.
func against(rivals ...rival) func(context.Context, *runner, *goal) error {
	return func(ctx context.Context, r *runner, g *goal) error {
		for _, rival := range rivals {
			pairs, err := r.compareBaseline(ctx, rival.mix, rival.baseline)
			if err != nil {
				return err
			}
			label := rival.mix
			if rival.baseline != bareName {
				label += ", against " + rival.baseline
			}
			g.addComparison(pairs, rival.baseline, label, rival.wantRate, 0)
		}
		return nil
	}
}

func measureBestRates(ctx context.Context, r *runner, g *goal) error {
	pairs, err := r.compareBaseline(ctx, mixBestRates, bareName)
	if err != nil {
		return err
	}
	g.addComparison(pairs, bareName, mixBestRates, 1.20, 0.85)
	share := measurement{Name: "part of its core that the load generator used, against bare", Unit: "×"}
	// If this share is close to 1, the load generator limits requests per second, and CPU time is the better figure.
	for i := range pairs {
		share.Rounds = append(share.Rounds, pairs[i].b.generatorCPU.Seconds()/pairs[i].b.Elapsed.Seconds())
	}
	g.add(share)
	return nil
}

const (
	// A request should allocate nothing. allocationsMax is not 0, because a node allocates occasionally: for tickers,
	// for new connections, and when it reserves a further part of an account's quota (a lease).
	allocationsMax = 0.05
	callsMax       = 2.1
)

// measureAllocations counts the objects that a node allocates for a request, and its system calls if strace is
// installed.
func measureAllocations(ctx context.Context, r *runner, g *goal) error {
	if err := r.prepare(ctx); err != nil {
		return err
	}
	scrape, err := r.scrapeAllocations(ctx)
	if err != nil {
		return err
	}
	m := measurement{Name: "objects allocated by the process, for each request"}
	for round := range r.options.Rounds {
		s, err := r.measure(ctx, side{server: r.node, keys: r.fixture.keys, mix: mixBestRates}, round)
		if err != nil {
			return err
		}
		m.Rounds = append(m.Rounds, max(0, s.mallocs-scrape)/float64(s.Responses))
	}
	g.require(m, "≤", allocationsMax)
	if checkStrace(ctx) != nil {
		return nil
	}
	costs := costList{mixBestRates: {}}
	if err := errors.Join(r.stopNode(), r.countCalls(ctx, costs, 1)); err != nil { // the traced node needs the data directory
		return err
	}
	g.require(measurement{Name: "system calls for each request", Rounds: []float64{sum(costs[mixBestRates].Calls)}}, "≤", callsMax)
	return nil
}

// measureLatency compares the latency of the node and of the bare server, which only sends the same response from
// memory. Both get half of the requests per second that the bare server can answer. Two bare servers show what the
// measurement itself adds.
func measureLatency(ctx context.Context, r *runner, g *goal) error {
	bare, err := r.startBaseline(ctx, bareName, mixBestRates)
	if err != nil {
		return err
	}
	another, err := r.startBaseline(ctx, bareName, mixBestRates)
	if err != nil {
		return err
	}
	node := side{server: r.node, keys: r.fixture.keys, mix: mixBestRates}
	baseline, control := node, node
	baseline.server, control.server = bare, another
	rate, err := r.halfCapacity(ctx, baseline)
	if err == nil {
		err = r.compareLatency(ctx, g, rate, 1.2, [2]string{"node", bareName}, node, baseline)
	}
	if err == nil {
		err = r.compareLatency(ctx, g, rate, 0, [2]string{"another bare", bareName}, control, baseline)
	}
	return err
}

// compareLatency compares the 99th percentiles of the latency of two servers at a rate. The first one must be at most
// want times the second one; if want is 0, there is no limit.
func (r *runner) compareLatency(ctx context.Context, g *goal, rate, want float64, names [2]string, a, b side) error {
	a.rate, b.rate = rate, rate
	pairs, err := r.compare(ctx, a, b)
	if err != nil {
		return err
	}
	latency := ratioOf(fmt.Sprintf("p99 at %.0f requests/s", rate), "ns", pairs, names, p99)
	if want > 0 {
		g.require(latency, "≤", want)
	} else {
		g.add(latency)
	}
	g.add(ratioOf("median", "ns", pairs, names, p50))
	return nil
}

// halfCapacity measures how many requests per second a server can answer, and returns half of that number.
func (r *runner) halfCapacity(ctx context.Context, s side) (float64, error) {
	var capacity []float64
	for round := range min(r.options.Rounds, repeatsMax) {
		result, err := r.measure(ctx, s, round)
		if err != nil {
			return 0, err
		}
		capacity = append(capacity, requestsPerSecond(&result))
	}
	return median(capacity) / 2, nil
}
