//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// scenario is a performance goal and how it is measured.
type scenario struct {
	goal, title string
	run         func(ctx context.Context, l *runner, g *goal) error
}

// scenarios returns all goals.
func scenarios() []scenario {
	return []scenario{
		{"F1", "the ten best rates, with a key, against the bare server", measureF1},
		{"F1c", "the same with 20,000 accounts and leases of 16", measureF1c},
		{"F1d", "the same with 30,000 accounts at the default quotas, on their first request", measureF1d},
		{"F2", "a full page against the bare server", measureF2},
		{"F3", "every other operation against the bare server", measureF3},
		{"F4", "allocations and system calls of a request, warm", measureF4},
		{"F5", "latency at half of the bare server's capacity", measureF5},
		{"F5w", "latency while the leases of 20,000 accounts are written", measureF5w},
		{"F6", "against nginx with the same bytes as a file", measureF6},
		{"F7", "against net/http with PostgreSQL", measureF7},
		{"F8", "from the start to the first answer", measureF8},
		{"F9", "memory for accounts that were active today", measureF9},
		{"F10", "observations imported, validated and durable", measureF10},
		{"F11", "the same page with more institutions, currencies and accounts", measureF11},
		{"F12", "reads while an update from every source is imported", measureF12},
		{"F13", "two processors against one", measureF13},
		{"F14", "new connections, TLS and pipelining against the bare server in the same mode", measureF14},
	}
}

// selectGoals returns the scenarios of a list of goals such as F1,F12; "" is all.
func selectGoals(list string) (some []scenario, err error) {
	names, known := strings.Split(strings.ReplaceAll(list, " ", ""), ","), []string{}
	for _, s := range scenarios() {
		known = append(known, s.goal)
		at := slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, s.goal) })
		if at >= 0 {
			names = slices.Delete(names, at, at+1)
		}
		if list == "" || at >= 0 {
			some = append(some, s)
		}
	}
	if list != "" && len(names) > 0 {
		return nil, fmt.Errorf("-goals: no goal %q; there are %s", names[0], strings.Join(known, ", "))
	}
	return some, nil
}

// measureGoal measures a goal for the report. A goal whose programs are not installed is skipped.
func (l *runner) measureGoal(ctx context.Context, s scenario) error {
	_, _ = fmt.Fprintf(l.progress, "%s  %s\n", s.goal, s.title)
	found := goal{ID: s.goal, Title: s.title}
	err := errors.Join(s.run(ctx, l, &found), l.stopStarted())
	var missing *missingError
	switch {
	case errors.As(err, &missing):
		l.report.Skipped = append(l.report.Skipped, s.goal+", "+missing.Error())
	case err != nil:
		return fmt.Errorf("%s, %s: %w", s.goal, s.title, err)
	default:
		l.report.Goals = append(l.report.Goals, found)
	}
	return nil
}

// against adds the comparison of the node with another server to a goal: requests per second, which must be at least
// wantRate, p99 and CPU time, which must be at most wantCPU unless that is 0.
func (g *goal) against(pairs []pair, other, what string, wantRate, wantCPU float64) {
	names := [2]string{"node", other}
	g.require(ratioOf("requests/s, "+what, "/s", pairs, names, requestsPerSecond), "≥", wantRate)
	cpu := ratioOf("CPU time of a request, "+what, "ns", pairs, names, cpuPerRequest)
	if wantCPU > 0 {
		g.require(cpu, "≤", wantCPU)
	} else {
		g.add(cpu)
	}
	g.add(ratioOf("p99 under full load, "+what, "ns", pairs, names, p99))
}

// againstBaseline compares the node with a baseline on one mix.
func (l *runner) againstBaseline(ctx context.Context, g *goal, mix, other string, wantRate, wantCPU float64) ([]pair, error) {
	pairs, err := l.compareBaseline(ctx, mix, other)
	what := mix
	if other != bareName {
		what += ", against " + other
	}
	if err == nil {
		g.against(pairs, other, what, wantRate, wantCPU)
	}
	return pairs, err
}

func measureF1(ctx context.Context, l *runner, g *goal) error {
	pairs, err := l.againstBaseline(ctx, g, mixBest, bareName, 1.20, 0.85)
	if err != nil {
		return err
	}
	share := measure{Name: "part of its core that the load generator used, against bare", Unit: "×"}
	for i := range pairs { // close to 1, requests per second say less than CPU time
		share.Rounds = append(share.Rounds, pairs[i].b.generator.Seconds()/pairs[i].b.elapsed.Seconds())
	}
	g.add(share)
	return nil
}

func measureF2(ctx context.Context, l *runner, g *goal) error {
	_, err := l.againstBaseline(ctx, g, mixFull, bareName, 1, 0)
	if err == nil {
		_, err = l.againstBaseline(ctx, g, mixGzip, bareName, 1, 0)
	}
	return err
}

func measureF3(ctx context.Context, l *runner, g *goal) error {
	_, err := l.againstBaseline(ctx, g, mixConvert, bareName, 0.80, 0)
	for _, mix := range []string{mixRates, mixHistory, mixCurrencies, mixInstitutions, mixInstitution} {
		if err == nil {
			_, err = l.againstBaseline(ctx, g, mix, bareName, 1, 0)
		}
	}
	return err
}

func measureF6(ctx context.Context, l *runner, g *goal) error {
	_, err := l.againstBaseline(ctx, g, mixBest, nginxName, 1.15, 0)
	if err == nil {
		_, err = l.againstBaseline(ctx, g, mixBest, nginxTunedName, 0.80, 0)
	}
	return err
}

func measureF7(ctx context.Context, l *runner, g *goal) error {
	_, err := l.againstBaseline(ctx, g, mixBest, postgresName, 10, 0)
	return err
}

const (
	// allocationsMax is zero as far as a running process can show: leases, tickers and connections allocate now and then.
	allocationsMax = 0.05
	callsMax       = 2.1
)

// measureF4 counts everything that a node allocates, and its system calls where strace is installed.
func measureF4(ctx context.Context, l *runner, g *goal) error {
	if err := l.prepare(ctx); err != nil {
		return err
	}
	scrape, err := l.scrapeAllocations(ctx)
	if err != nil {
		return err
	}
	m := measure{Name: "objects allocated by the process, for each request"}
	for round := range l.options.Rounds {
		s, err := l.measure(ctx, side{server: l.node, keys: l.fixture.keys, mix: mixBest}, round)
		if err != nil {
			return err
		}
		m.Rounds = append(m.Rounds, max(0, s.mallocs-scrape)/float64(s.answers))
	}
	g.require(m, "≤", allocationsMax)
	if canTrace(ctx) != nil {
		return nil
	}
	found := costList{mixBest: {}}
	if err := errors.Join(l.stopNode(), l.countCalls(ctx, found, 1)); err != nil { // the traced node uses the same data
		return err
	}
	g.require(measure{Name: "system calls for each request", Rounds: []float64{sum(found[mixBest].Calls)}}, "≤", callsMax)
	return nil
}

// measureF5 finds the bare server's capacity, then sends both servers half of that rate.
func measureF5(ctx context.Context, l *runner, g *goal) error {
	bare, err := l.startBaseline(ctx, bareName, mixBest)
	if err != nil {
		return err
	}
	node, other := side{server: l.node, keys: l.fixture.keys, mix: mixBest}, side{server: bare, keys: l.fixture.keys, mix: mixBest}
	rate, err := l.halfCapacity(ctx, other)
	if err != nil {
		return err
	}
	node.rate, other.rate = rate, rate
	pairs, err := l.compare(ctx, node, other)
	if err != nil {
		return err
	}
	names := [2]string{"node", bareName}
	g.require(ratioOf(fmt.Sprintf("p99 at %.0f requests/s", rate), "ns", pairs, names, p99), "≤", 1.2)
	g.add(ratioOf("median", "ns", pairs, names, p50))
	g.add(ratioOf("CPU time of a request", "ns", pairs, names, cpuPerRequest))
	return nil
}

// halfCapacity returns half of what a side answers per second.
func (l *runner) halfCapacity(ctx context.Context, s side) (float64, error) {
	var capacity []float64
	for round := range min(l.options.Rounds, repeatsMax) {
		found, err := l.measure(ctx, s, round)
		if err != nil {
			return 0, err
		}
		capacity = append(capacity, requestsPerSecond(&found))
	}
	return median(capacity) / 2, nil
}
