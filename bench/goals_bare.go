package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// What limits the node where it falls short of the bare server.
const (
	limitWork = "parsing, the key's digest, two quota windows, three letters between actors and the limits' headers are what bare does not do"
	limitSync = "a sync of the log holds the only processor that the Go scheduler has until the disk has answered, about a millisecond"
	limitSent = "each amount makes a body and a tag of its own"
)

func measureF1(ctx context.Context, l *lab, g *goal) error {
	pairs, err := l.besideBare(ctx, mixBest)
	if err != nil {
		return err
	}
	names := [2]string{"node", "bare"}
	g.Measures = []measure{
		ratioOf("requests/s", "/s", pairs, names, perSecond).bound(0.90, true, limitWork),
		ratioOf("CPU time of a request", "ns", pairs, names, cpuEach).bound(1.12, false, limitWork),
		ratioOf("p99 under full load", "ns", pairs, names, p99).free(),
		shareOfLoad(pairs),
	}
	return nil
}

// shareOfLoad tells whether the load was what limited: then requests/s say less than CPU time does.
func shareOfLoad(pairs []pair) measure {
	m := measure{Name: "share of its core that the load itself took, asking bare", Unit: "×"}
	for i := range pairs {
		m.Rounds = append(m.Rounds, pairs[i].b.generator.Seconds()/pairs[i].b.elapsed.Seconds())
	}
	m.Value = median(m.Rounds)
	return m.free()
}

func measureF2(ctx context.Context, l *lab, g *goal) error {
	for _, page := range []struct{ mix, name string }{{mixFull, "as it is"}, {mixGzip, "compressed"}} {
		pairs, err := l.besideBare(ctx, page.mix)
		if err != nil {
			return err
		}
		names := [2]string{"node", "bare"}
		g.Measures = append(g.Measures,
			ratioOf("requests/s, "+page.name, "/s", pairs, names, perSecond).bound(0.90, true, limitWork),
			ratioOf("CPU time of a request, "+page.name, "ns", pairs, names, cpuEach).free())
	}
	return nil
}

func measureF3(ctx context.Context, l *lab, g *goal) error {
	for _, mix := range []string{mixConvert, mixRates, mixHistory, mixCurrencies, mixInstitutions, mixInstitution} {
		pairs, err := l.besideBare(ctx, mix)
		if err != nil {
			return err
		}
		want, limit := 0.85, limitWork
		if mix == mixConvert {
			want, limit = 0.70, limitSent
		}
		names := [2]string{"node", "bare"}
		g.Measures = append(g.Measures,
			ratioOf("requests/s, "+mix, "/s", pairs, names, perSecond).bound(want, true, limit),
			ratioOf("CPU time of a request, "+mix, "ns", pairs, names, cpuEach).free())
	}
	return nil
}

// measureF4 counts what the running node allocates for each request, all of it: leases, the sweep of accounts, the runtime.
func measureF4(ctx context.Context, l *lab, g *goal) error {
	if err := l.prepare(ctx); err != nil {
		return err
	}
	scrape, err := l.scrape(ctx)
	if err != nil {
		return err
	}
	m := measure{Name: "objects a request, whatever made them", Unit: "allocations"}
	for round := range l.options.Rounds {
		l.progress.next()
		s, err := l.measure(ctx, l.ours(mixes(benchInstitution)[mixBest]), uint64(round))
		if err != nil {
			return err
		}
		m.Rounds = append(m.Rounds, max(0, float64(s.mallocs)-scrape)/float64(s.answers))
	}
	m.Value = median(m.Rounds)
	g.Measures = []measure{m.bound(allocationsMax, false, "a request itself allocates nothing (TestNodeAllocatesNothing): leases do")}
	return nil
}

// allocationsMax is none, as far as a running process can tell: leases, tickers, connections and the collector allocate now and then.
const allocationsMax = 0.05

// scrape is how many objects it costs the node to be asked for its allocations.
func (l *lab) scrape(ctx context.Context) (float64, error) {
	var counts [3]uint64
	for i := range counts {
		var err error
		if counts[i], err = l.node.mallocs(ctx); err != nil {
			return 0, err
		}
	}
	return float64(counts[2] - counts[1]), nil
}

// measureF5 finds the bare server's capacity, then asks both half of it, each request at its moment.
func measureF5(ctx context.Context, l *lab, g *goal) error {
	if err := l.prepare(ctx); err != nil {
		return err
	}
	questions, before := mixes(benchInstitution)[mixBest], len(l.started)
	bare, err := l.bare(ctx, questions)
	if err != nil {
		return err
	}
	var capacity []float64
	for round := range l.options.Rounds {
		l.progress.next()
		s, err := l.measure(ctx, bare, uint64(round))
		if err != nil {
			return err
		}
		capacity = append(capacity, perSecond(&s))
	}
	ours := l.ours(questions)
	ours.rate = median(capacity) / 2
	bare.rate = ours.rate
	pairs, err := l.compare(ctx, ours, bare)
	if err != nil {
		return err
	}
	names := [2]string{"node", "bare"}
	g.Measures = []measure{
		ratioOf("p99", "ns", pairs, names, p99).bound(1.5, false, limitSync),
		ratioOf("median", "ns", pairs, names, func(s *sample) float64 { return float64(s.latency.ValueAtQuantile(50)) }).free(),
		ratioOf("CPU time of a request", "ns", pairs, names, cpuEach).free(),
	}
	at := fmt.Sprintf(" at %.0f requests/s", ours.rate)
	l.report.Curves = append(l.report.Curves,
		curveOf(g.ID, "node"+at, pairs, func(p *pair) *sample { return &p.a }),
		curveOf(g.ID, "bare"+at, pairs, func(p *pair) *sample { return &p.b }))
	return l.stopFrom(before)
}

func measureF6(ctx context.Context, l *lab, g *goal) error {
	if err := l.prepare(ctx); err != nil {
		return err
	}
	questions, before := mixes(benchInstitution)[mixBest], len(l.started)
	replies, err := capture(ctx, l.node.address, l.fixture.keys[0], questions)
	if err != nil {
		return err
	}
	files := filepath.Join(l.dir, "nginx")
	if err := os.Mkdir(files, 0o700); err != nil {
		return fmt.Errorf("make a directory for nginx: %w", err)
	}
	found, err := l.start(ctx, newNginx(files, replies))
	if err != nil {
		return err
	}
	pairs, err := l.compare(ctx, l.ours(questions), side{target: found, keys: l.fixture.keys, questions: questions})
	if err != nil {
		return err
	}
	names := [2]string{"node", "nginx"}
	g.Measures = []measure{
		ratioOf("requests/s", "/s", pairs, names, perSecond).bound(1, true, "nginx writes a file that it has open, and does nothing else"),
		ratioOf("CPU time of a request", "ns", pairs, names, cpuEach).free(),
		ratioOf("p99 under full load", "ns", pairs, names, p99).free(),
	}
	return l.stopFrom(before)
}

func measureF7(ctx context.Context, l *lab, g *goal) error {
	if err := l.prepare(ctx); err != nil {
		return err
	}
	rates, err := readPublished(ctx, l.node.address, l.fixture.keys[0])
	if err != nil {
		return err
	}
	questions := mixes(benchInstitution)[mixBest]
	for _, counted := range []bool{false, true} {
		before := len(l.started)
		other := newPostgres(l.self, rates, l.fixture.keys, counted)
		found, err := l.start(ctx, other)
		if err != nil {
			return err
		}
		pairs, err := l.compare(ctx, l.ours(questions), side{target: found, keys: l.fixture.keys, questions: questions})
		if err = errors.Join(err, l.stopFrom(before)); err != nil {
			return err
		}
		names := [2]string{"node", other.name()}
		requests := ratioOf("requests/s, "+other.name(), "/s", pairs, names, perSecond)
		if !counted { // what favours PostgreSQL most
			requests = requests.bound(10, true, "one indexed query is little work for PostgreSQL")
		} else {
			requests = requests.free()
		}
		g.Measures = append(g.Measures, requests, ratioOf("CPU time of a request, "+other.name(), "ns", pairs, names, cpuEach).free())
	}
	return nil
}
