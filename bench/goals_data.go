//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tasard/tasard/engine"
)

// Amounts of data.
const (
	startRecords  = 1_000_000
	startAccounts = 100_000
	memoryFew     = 100
	memoryMany    = 100_000
	importLines   = 300_000
	growthTimes   = 10
	// repeatsMax is how many starts or imports a figure is the median of, at most.
	repeatsMax = 7
)

// importedText begins the line that a node logs after an import.
const importedText = "imported "

// measureF8 measures starts, from the start of the process until an answer with status 200. Nodes are killed, so that
// every start finds the same directory.
func measureF8(ctx context.Context, l *runner, g *goal) error {
	for _, one := range []struct {
		name, dir string
		size      fixtureSize
		want      float64 // ms
	}{
		{"after 1,000,000 records in the log", "start-records", fixtureSize{44, 8, 1, 1}, 1000},
		{"100,000 accounts, from a snapshot", "start-accounts", fixtureSize{44, 8, startAccounts, 1}, 300},
		{"a year of 50 institutions and 5 currencies, from a snapshot", "start-history", fixtureSize{50, 5, 1, 365}, 300},
	} {
		made, err := newFixture(filepath.Join(l.dir, one.dir), one.size)
		if err == nil && one.dir == "start-records" {
			err = l.growLog(ctx, made)
		}
		if err != nil {
			return err
		}
		m := measure{Name: one.name, Unit: "ms"}
		for range min(l.options.Rounds, repeatsMax) {
			node, err := l.startNode(ctx, made)
			if err != nil {
				return err
			}
			node.kill()
			m.Rounds = append(m.Rounds, float64(node.startDuration.Microseconds())/1000)
		}
		g.require(m, "≤", one.want)
	}
	return nil
}

// growLog has a node import observations one by one and kills it: it leaves snapshots and records after the last one.
func (l *runner) growLog(ctx context.Context, made *fixture) error {
	market, file := newMarket(engine.DefaultCatalogue(), fixtureSize{institutions: 44, currencies: 8}), filepath.Join(l.dir, "records.csv")
	ago := func(line int) time.Duration { return time.Duration(startRecords-line) * time.Second / 2 }
	if err := writeObservations(file, market, startRecords, "", ago); err != nil {
		return err
	}
	node, err := l.startNode(ctx, made, "--import", file)
	if err != nil {
		return err
	}
	defer node.kill()
	waiting, cancel := context.WithTimeout(ctx, 5*startTimeout)
	defer cancel()
	_, err = node.processes[0].awaitLine(waiting, importedText)
	return errors.Join(err, os.Remove(file))
}

// measureF9 sends one request for each of many accounts, restarts the node and compares its heap with that of a node
// with few accounts. Accounts that were active just now use more, because each has an actor for some minutes.
func measureF9(ctx context.Context, l *runner, g *goal) error {
	var after, now [2]float64
	for i, accounts := range []int{memoryFew, memoryMany} {
		made, err := newFixture(filepath.Join(l.dir, fmt.Sprintf("memory-%d", accounts)), fixtureSize{44, 8, accounts, 1})
		if err != nil {
			return err
		}
		if now[i], after[i], err = l.heapWithAccounts(ctx, made); err != nil {
			return err
		}
	}
	each := func(bytes [2]float64) []float64 { return []float64{(bytes[1] - bytes[0]) / (memoryMany - memoryFew)} }
	g.require(measure{Name: "heap of an account that asked today, after a start", Unit: "B", Rounds: each(after)}, "≤", 1024)
	g.add(measure{Name: "heap of an account that asked just now, with its actor", Unit: "B", Rounds: each(now)})
	return nil
}

// heapWithAccounts returns the heap of a node after a request for every account, and again after a restart.
func (l *runner) heapWithAccounts(ctx context.Context, made *fixture) (now, after float64, err error) {
	node, err := l.startNode(ctx, made)
	if err != nil {
		return 0, 0, err
	}
	if err = l.useAllAccounts(ctx, node, made.keys); err == nil {
		now, err = node.heap(ctx)
	}
	node.kill()
	if err != nil {
		return 0, 0, err
	}
	if node, err = l.startNode(ctx, made); err != nil {
		return 0, 0, err
	}
	defer node.kill()
	after, err = node.heap(ctx)
	return now, after, err
}

// heap returns the live heap of a node, after a garbage collection.
func (s *server) heap(ctx context.Context) (float64, error) {
	if _, err := s.adminGet(ctx, "/debug/pprof/heap?gc=1"); err != nil {
		return 0, err
	}
	return s.metric(ctx, "go_memstats_heap_alloc_bytes")
}

// useAllAccounts sends at least one request for each account, which loads it and leases quota.
func (l *runner) useAllAccounts(ctx context.Context, on *server, keys []string) error {
	return retry(ctx, func() error {
		source := &perAccount{keys: keys, mix: newMix(benchHost, nil, mixes()[mixBest])}
		for source.sent < len(keys) {
			g := &clients{requests: source, connections: l.options.Connections}
			if _, err := l.sample(ctx, on, &load{groups: []*clients{g}, measure: time.Second}); err != nil {
				return err
			}
		}
		return nil
	})
}

// measureF10 measures tasard import of updates of a whole market from one source, as an aggregator publishes them, into
// a new directory each time.
func measureF10(ctx context.Context, l *runner, g *goal) error {
	market, file := newMarket(engine.DefaultCatalogue(), standardSize()), filepath.Join(l.dir, "import.csv")
	// An aggregator publishes the rates of one institution together.
	slices.SortStableFunc(market, func(a, b quoteSource) int { return strings.Compare(a.source, b.source) })
	updates := importLines/len(market) + 1
	ago := func(line int) time.Duration { return time.Duration(updates-line/len(market)) * time.Minute }
	if err := writeObservations(file, market, updates*len(market), "list", ago); err != nil {
		return err
	}
	m := measure{Name: "observations a second, in lists of all institutions", Unit: "/s"}
	for round := range min(l.options.Rounds, repeatsMax) {
		began, into := time.Now(), filepath.Join(l.dir, fmt.Sprintf("import-%d", round))
		p, err := startProcess(&command{name: "tasard import", argv: []string{l.tasard, "import", "--data", into, file}}, serverCore)
		if err == nil {
			err = p.awaitExit(ctx)
		}
		if err != nil {
			return err
		}
		m.Rounds = append(m.Rounds, float64(updates*len(market))/time.Since(began).Seconds())
	}
	g.require(m, "≥", 50_000)
	return os.Remove(file)
}

// measureF11 compares nodes with more data with one that has little, with the same page for all accounts.
func measureF11(ctx context.Context, l *runner, g *goal) error {
	base := fixtureSize{institutions: 44, currencies: 8, accounts: 100, days: 7}
	small, err := l.startSide(ctx, "growth-base", base)
	if err != nil {
		return err
	}
	for _, more := range []struct {
		name, dir string
		size      fixtureSize
	}{
		{"10 times the institutions", "institutions", fixtureSize{growthTimes * base.institutions, base.currencies, base.accounts, base.days}},
		{"10 times the currencies", "currencies", fixtureSize{base.institutions, growthTimes * base.currencies, base.accounts, base.days}},
		{"1,000 times the accounts", "accounts", fixtureSize{base.institutions, base.currencies, 1000 * base.accounts, base.days}},
	} {
		large, err := l.startSide(ctx, "growth-"+more.dir, more.size)
		if err == nil && more.size.accounts > base.accounts {
			err = l.useAllAccounts(ctx, large.server, large.keys)
		}
		if err != nil {
			return err
		}
		pairs, err := l.compare(ctx, large, small)
		if err != nil {
			return err
		}
		names := [2]string{"more", "base"}
		g.require(ratioOf("requests/s, "+more.name, "/s", pairs, names, requestsPerSecond), "≥", 0.9)
		g.add(ratioOf("CPU time of a request, "+more.name, "ns", pairs, names, cpuPerRequest))
	}
	return nil
}

// measureF12 sends half of a node's capacity, first without and then during an update from every source. A node
// imports one file, at its start, so each round has its own node, which reads from a pipe.
func measureF12(ctx context.Context, l *runner, g *goal) error {
	size := standardSize()
	size.accounts = l.options.Accounts
	made, err := newFixture(filepath.Join(l.dir, "refresh"), size)
	if err != nil {
		return err
	}
	node, err := l.startNode(ctx, made)
	if err != nil {
		return err
	}
	rate, err := l.halfCapacity(ctx, side{server: node, keys: made.keys, mix: mixBest})
	if err = errors.Join(err, node.stop()); err != nil {
		return err
	}
	market, random := newMarket(engine.DefaultCatalogue(), size), rand.New(rand.NewPCG(fixtureSeed, 12))
	var pairs []pair
	for round := range l.options.Rounds {
		for i := range market {
			market[i].drift(random)
		}
		p, err := l.refreshRound(ctx, made, market, rate, round)
		if err != nil {
			return err
		}
		pairs = append(pairs, p)
	}
	names := [2]string{"refresh", "quiet"}
	g.require(ratioOf(fmt.Sprintf("p99 of a round with a refresh, at %.0f requests/s", rate), "ns", pairs, names, p99), "≤", 1.5)
	g.add(ratioOf("longest answer", "ns", pairs, names, latencyMax))
	return nil
}

// refreshRound is one round: b without, a with the update.
func (l *runner) refreshRound(ctx context.Context, made *fixture, market []quoteSource, rate float64, round int) (p pair, err error) {
	pipe := filepath.Join(l.dir, fmt.Sprintf("refresh-%d.csv", round))
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		return p, fmt.Errorf("make a pipe: %w", err)
	}
	// Opened for reading too, so that opening does not wait for the node.
	writer, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		return p, fmt.Errorf("open the pipe: %w", err)
	}
	node, err := l.startNode(ctx, made, "--import", pipe)
	if err != nil {
		return p, errors.Join(err, writer.Close())
	}
	defer func() { err = errors.Join(err, node.stop()) }()
	s := side{server: node, keys: made.keys, mix: mixBest, rate: rate}
	if p.b, err = l.measure(ctx, s, round); err != nil {
		return p, errors.Join(err, writer.Close())
	}
	said := make(chan error, 1)
	go func() { // the load uses this thread
		said <- errors.Join(writeMarket(ctx, writer, market, l.options.Warmup+l.options.Measure/10), writer.Close())
	}()
	p.a, err = l.measure(ctx, s, round)
	if err = errors.Join(err, <-said); err == nil {
		_, err = node.processes[0].awaitLine(ctx, importedText)
	}
	return p, err
}

// writeMarket writes the quotes of a market after a pause.
func writeMarket(ctx context.Context, to *os.File, market []quoteSource, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	lines, now := []byte(observationHeader), time.Now()
	for i := range market {
		lines = market[i].appendLine(lines, market[i].source, now)
	}
	_, err := to.Write(lines)
	return err
}
