//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// scenario is one of the goals of performance, and how it is measured.
type scenario struct {
	goal, title string
	run         func(ctx context.Context, l *runner, g *goal) error
}

// scenarios is the table of goals.
func scenarios() []scenario {
	return []scenario{
		{"F1", "the ten best rates, with a key, beside the bare server", measureF1},
		{"F2", "a full page beside the bare server", measureF2},
		{"F3", "every other operation beside the bare server", measureF3},
		{"F4", "allocations of a request, warm", measureF4},
		{"F5", "latency at half of the bare server's capacity", measureF5},
		{"F6", "beside nginx with the same bytes as a file", measureF6},
		{"F7", "beside net/http with PostgreSQL", measureF7},
		{"F8", "from the start to the first answer", measureF8},
		{"F9", "memory for accounts that were active today", measureF9},
		{"F10", "observations taken in, validated, durable", measureF10},
		{"F11", "the same page with ten and a thousand times more of all", measureF11},
		{"F12", "reads while a refresh of every source is taken in", measureF12},
	}
}

// selectGoals are the scenarios of a list of goals such as F1,F12; "" is all.
func selectGoals(list string) (some []scenario, err error) {
	names := strings.Split(strings.ToUpper(strings.ReplaceAll(list, " ", "")), ",")
	for _, s := range scenarios() {
		if at := slices.Index(names, s.goal); list == "" || at >= 0 {
			some = append(some, s)
			names = slices.DeleteFunc(names, func(name string) bool { return name == s.goal })
		}
	}
	if list != "" && len(names) > 0 {
		return nil, fmt.Errorf("-goals: no goal %q; there are F1 to F%d", names[0], len(scenarios()))
	}
	return some, nil
}

// measureGoal measures a goal and puts it into the report. What is missing here is skipped by name.
func (l *runner) measureGoal(ctx context.Context, s scenario) error {
	_, _ = fmt.Fprintf(l.progress, "%s  %s\n", s.goal, s.title)
	found := goal{ID: s.goal, Title: s.title}
	err := s.run(ctx, l, &found)
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

// What limits the node where it falls short of the bare server.
const (
	limitWork = "parsing, the key's digest, two quota windows, messages between actors and the limits' headers are what bare does not do"
	limitSync = "a sync of the log holds the only processor that the Go scheduler has until the disk has answered, about a millisecond"
	limitBody = "each amount makes a body and a tag of its own"
)

// nodeAgainst are the names of the sides of most comparisons.
func nodeAgainst(name string) [2]string { return [2]string{"node", name} }

// requireBaseline compares the node with another server on one mix. It bounds requests a second from below.
func (l *runner) requireBaseline(ctx context.Context, g *goal, mix, other string, want float64, limit string) ([]pair, error) {
	pairs, err := l.compareBaseline(ctx, mix, other)
	if err != nil {
		return nil, err
	}
	g.require(ratioOf("requests/s, "+mix, "/s", pairs, nodeAgainst(other), requestsPerSecond), "≥", want, limit)
	g.add(ratioOf("p99 under full load, "+mix, "ns", pairs, nodeAgainst(other), p99))
	g.add(ratioOf("CPU time of a request, "+mix, "ns", pairs, nodeAgainst(other), cpuPerRequest))
	return pairs, nil
}

func measureF1(ctx context.Context, l *runner, g *goal) error {
	pairs, err := l.requireBaseline(ctx, g, mixBest, "bare", 0.90, limitWork)
	if err != nil {
		return err
	}
	cpu := &g.Measures[len(g.Measures)-1]
	g.Measures = g.Measures[:len(g.Measures)-1]
	g.require(*cpu, "≤", 1.12, limitWork)
	share := measure{Name: "share of its core that the load itself took, asking bare", Unit: "×"}
	for i := range pairs { // near to 1 requests/s say less than CPU time does
		share.Rounds = append(share.Rounds, pairs[i].b.generator.Seconds()/pairs[i].b.elapsed.Seconds())
	}
	g.add(share)
	return nil
}

func measureF2(ctx context.Context, l *runner, g *goal) error {
	_, err := l.requireBaseline(ctx, g, mixFull, "bare", 0.90, limitWork)
	if err == nil {
		_, err = l.requireBaseline(ctx, g, mixGzip, "bare", 0.90, limitWork)
	}
	return err
}

func measureF3(ctx context.Context, l *runner, g *goal) error {
	_, err := l.requireBaseline(ctx, g, mixConvert, "bare", 0.70, limitBody)
	for _, mix := range []string{mixRates, mixHistory, mixCurrencies, mixInstitutions, mixInstitution} {
		if err == nil {
			_, err = l.requireBaseline(ctx, g, mix, "bare", 0.85, limitWork)
		}
	}
	return err
}

func measureF6(ctx context.Context, l *runner, g *goal) error {
	_, err := l.requireBaseline(ctx, g, mixBest, "nginx", 1, "nginx writes a file that it has open, and does nothing else")
	return err
}

func measureF7(ctx context.Context, l *runner, g *goal) error {
	_, err := l.requireBaseline(ctx, g, mixBest, "postgres", 10, "one indexed query is little work for PostgreSQL")
	return err
}

// allocationsMax is none, as far as a running process can tell: leases, tickers, connections and the collector allocate now and then.
const allocationsMax = 0.05

// measureF4 counts what the running node allocates for each request, all of it: leases, the sweep of accounts, the runtime.
func measureF4(ctx context.Context, l *runner, g *goal) error {
	if err := l.prepare(ctx); err != nil {
		return err
	}
	scrape, err := l.scrapeAllocations(ctx)
	if err != nil {
		return err
	}
	m := measure{Name: "objects a request, whatever made them"}
	for round := range l.options.Rounds {
		s, err := l.measure(ctx, side{l.node, l.fixture.keys, mixBest, 0}, round)
		if err != nil {
			return err
		}
		m.Rounds = append(m.Rounds, max(0, s.mallocs-scrape)/float64(s.answers))
	}
	g.require(m, "≤", allocationsMax, "a request itself allocates nothing (TestNodeAllocatesNothing): leases do")
	return nil
}

// measureF5 finds the bare server's capacity, then asks both half of it, each request at its moment.
func measureF5(ctx context.Context, l *runner, g *goal) error {
	bare, err := l.startBaseline(ctx, "bare", mixBest)
	if err != nil {
		return err
	}
	ours, other := side{l.node, l.fixture.keys, mixBest, 0}, side{bare, l.fixture.keys, mixBest, 0}
	rate, err := l.halfCapacity(ctx, other)
	if err != nil {
		return err
	}
	ours.rate, other.rate = rate, rate
	pairs, err := l.compare(ctx, ours, other)
	if err != nil {
		return err
	}
	at, names := fmt.Sprintf(" at %.0f requests/s", rate), nodeAgainst("bare")
	g.require(ratioOf("p99"+at, "ns", pairs, names, p99), "≤", 1.5, limitSync)
	g.add(ratioOf("median", "ns", pairs, names, p50))
	g.add(ratioOf("CPU time of a request", "ns", pairs, names, cpuPerRequest))
	return l.stopFrom(len(l.started) - 1)
}

// halfCapacity is half of what a side answers in a second.
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
