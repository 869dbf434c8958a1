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

	"github.com/tasard/tasard/bench/load"
	"github.com/tasard/tasard/engine"
)

// Amounts of data in the measurements of this file.
const (
	startRecords  = 1_000_000
	startAccounts = 100_000
	fewAccounts   = 100
	manyAccounts  = 100_000
	importLines   = 300_000
	growthFactor  = 10
	// repeatsMax is the largest number of repetitions of slow measurements, such as starts and imports.
	repeatsMax = 7
)

// importedPrefix is the beginning of the log line that a node writes after an import.
const importedPrefix = "imported "

// measureStartup measures the time from the start of the process until a response with status 200. It kills each node
// instead of stopping it, so that the data directory has the same contents at each start.
func measureStartup(ctx context.Context, r *runner, g *goal) error {
	for _, tc := range []struct {
		name, dir string
		size      fixtureSize
		want      float64 // longest time from start to response, in ms
	}{
		{"after 1,000,000 records in the log", "start-records", fixtureSize{44, 8, 1, 1}, 1000},
		{"100,000 accounts, from a snapshot", "start-accounts", fixtureSize{44, 8, startAccounts, 1}, 300},
		{"a year of 50 institutions and 5 currencies, from a snapshot", "start-history", fixtureSize{50, 5, 1, 365}, 300},
	} {
		fix, err := newFixture(filepath.Join(r.dir, tc.dir), tc.size)
		if err == nil && tc.dir == "start-records" {
			err = r.growLog(ctx, fix)
		}
		if err != nil {
			return err
		}
		durations := measurement{Name: tc.name, Unit: "ms"}
		for range min(r.options.Rounds, repeatsMax) {
			node, err := r.startNode(ctx, fix)
			if err != nil {
				return err
			}
			node.kill()
			durations.Rounds = append(durations.Rounds, float64(node.startDuration.Microseconds())/1000)
		}
		g.require(durations, "≤", tc.want)
	}
	return nil
}

// growLog lets a node import startRecords observations one by one, and then kills the node. The data directory then
// contains snapshots of the node's state, and log records that are newer than the newest snapshot.
func (r *runner) growLog(ctx context.Context, fix *fixture) error {
	market, file := newMarket(engine.DefaultCatalogue(), fixtureSize{institutions: 44, currencies: 8}), filepath.Join(r.dir, "records.csv")
	age := func(line int) time.Duration { return time.Duration(startRecords-line) * time.Second / 2 }
	if err := writeObservations(file, market, startRecords, "", age); err != nil {
		return err
	}
	node, err := r.startNode(ctx, fix, "--import", file)
	if err != nil {
		return err
	}
	defer node.kill()
	waitCtx, cancel := context.WithTimeout(ctx, 5*startTimeout)
	defer cancel()
	_, err = node.processes[0].awaitLine(waitCtx, importedPrefix)
	return errors.Join(err, os.Remove(file))
}

// measureAccountHeap measures the heap memory that an account needs: it compares a node with many accounts and a node
// with few. It compares them first after a request for each account, and then after a restart. An account needs more
// memory before the restart, because after a request it stays loaded for some minutes.
func measureAccountHeap(ctx context.Context, r *runner, g *goal) error {
	var restarted, active [2]float64
	for i, accounts := range []int{fewAccounts, manyAccounts} {
		fix, err := newFixture(filepath.Join(r.dir, fmt.Sprintf("memory-%d", accounts)), fixtureSize{44, 8, accounts, 1})
		if err != nil {
			return err
		}
		if active[i], restarted[i], err = r.heapWithAccounts(ctx, fix); err != nil {
			return err
		}
	}
	heapPerAccount := func(bytes [2]float64) []float64 {
		return []float64{(bytes[1] - bytes[0]) / (manyAccounts - fewAccounts)}
	}
	g.require(measurement{Name: "heap of an account that asked today, after a start", Unit: "B", Rounds: heapPerAccount(restarted)}, "≤", 1024)
	g.add(measurement{Name: "heap of an account that asked just now, with its actor", Unit: "B", Rounds: heapPerAccount(active)})
	return nil
}

// heapWithAccounts returns the heap of a node after a request for each account, and the heap after a restart.
func (r *runner) heapWithAccounts(ctx context.Context, fix *fixture) (active, restarted float64, err error) {
	node, err := r.startNode(ctx, fix)
	if err != nil {
		return 0, 0, err
	}
	if err = r.useAllAccounts(ctx, node, fix.keys); err == nil {
		active, err = node.heap(ctx)
	}
	node.kill()
	if err != nil {
		return 0, 0, err
	}
	if node, err = r.startNode(ctx, fix); err != nil {
		return 0, 0, err
	}
	defer node.kill()
	restarted, err = node.heap(ctx)
	return active, restarted, err
}

// heap returns the bytes of live objects in a node, after a garbage collection.
func (s *server) heap(ctx context.Context) (float64, error) {
	if _, err := s.adminGet(ctx, "/debug/pprof/heap?gc=1"); err != nil {
		return 0, err
	}
	return s.metric(ctx, "go_memstats_heap_alloc_bytes")
}

// useAllAccounts sends at least one request for each account. The node then loads all accounts. For each account it
// reserves a part of the account's daily quota in its log (a quota lease).
func (r *runner) useAllAccounts(ctx context.Context, node *server, keys []string) error {
	return r.retry(ctx, func() error {
		source := &perAccount{keys: keys, mix: newMix(benchHost, nil, mixes()[mixBestRates])}
		for source.sent < len(keys) {
			group := &load.Clients{Requests: source, Connections: r.options.Connections}
			if _, err := r.sample(ctx, node, &load.Generator{Groups: []*load.Clients{group}, Measure: time.Second}); err != nil {
				return err
			}
		}
		return nil
	})
}

// measureImport measures the command tasard import. The imported file has many quotes (buy and sell prices) of each
// institution. All of them come from one aggregator, a source that publishes the rates of several institutions. Each
// round imports the file into a new directory.
func measureImport(ctx context.Context, r *runner, g *goal) error {
	market, file := newMarket(engine.DefaultCatalogue(), standardSize()), filepath.Join(r.dir, "import.csv")
	// An aggregator publishes the rates of one institution together.
	slices.SortStableFunc(market, func(a, b quoteSource) int { return strings.Compare(a.source, b.source) })
	updates := importLines/len(market) + 1
	age := func(line int) time.Duration { return time.Duration(updates-line/len(market)) * time.Minute }
	if err := writeObservations(file, market, updates*len(market), "list", age); err != nil {
		return err
	}
	m := measurement{Name: "observations a second, in lists of all institutions", Unit: "/s"}
	for round := range min(r.options.Rounds, repeatsMax) {
		start, dir := time.Now(), filepath.Join(r.dir, fmt.Sprintf("import-%d", round))
		process, err := startProcess(&command{name: "tasard import", argv: []string{r.tasard, "import", "--data", dir, file}}, serverCore)
		if err == nil {
			err = process.awaitExit(ctx)
		}
		if err != nil {
			return err
		}
		m.Rounds = append(m.Rounds, float64(updates*len(market))/time.Since(start).Seconds())
	}
	g.require(m, "≥", 50_000)
	return os.Remove(file)
}

// measureGrowth compares a small node with nodes that have more institutions, currencies or accounts. All requests
// are for the same page.
func measureGrowth(ctx context.Context, r *runner, g *goal) error {
	base := fixtureSize{institutions: 44, currencies: 8, accounts: 100, days: 7}
	small, err := r.startSide(ctx, "growth-base", base)
	if err != nil {
		return err
	}
	for _, tc := range []struct {
		name, dir string
		size      fixtureSize
	}{
		{"10 times the institutions", "institutions", fixtureSize{growthFactor * base.institutions, base.currencies, base.accounts, base.days}},
		{"10 times the currencies", "currencies", fixtureSize{base.institutions, growthFactor * base.currencies, base.accounts, base.days}},
		{"1,000 times the accounts", "accounts", fixtureSize{base.institutions, base.currencies, 1000 * base.accounts, base.days}},
	} {
		large, err := r.startSide(ctx, "growth-"+tc.dir, tc.size)
		if err == nil && tc.size.accounts > base.accounts {
			err = r.useAllAccounts(ctx, large.server, large.keys)
		}
		if err != nil {
			return err
		}
		pairs, err := r.compare(ctx, large, small)
		if err != nil {
			return err
		}
		names := [2]string{"more", "base"}
		g.require(ratioOf("requests/s, "+tc.name, "/s", pairs, names, requestsPerSecond), "≥", 0.9)
		g.add(ratioOf("CPU time of a request, "+tc.name, "ns", pairs, names, cpuPerRequest))
	}
	return nil
}

// measureRefresh compares the latency of a node with and without an update of all quotes (buy and sell prices). The
// node gets half of the requests per second that it can answer. tasard serve imports a file only when it starts. Each
// round therefore starts a node that imports from a named pipe, and writes the update into the pipe later.
func measureRefresh(ctx context.Context, r *runner, g *goal) error {
	size := standardSize()
	size.accounts = r.options.Accounts
	fix, err := newFixture(filepath.Join(r.dir, "refresh"), size)
	if err != nil {
		return err
	}
	node, err := r.startNode(ctx, fix)
	if err != nil {
		return err
	}
	rate, err := r.halfCapacity(ctx, side{server: node, keys: fix.keys, mix: mixBestRates})
	if err = errors.Join(err, node.stop()); err != nil {
		return err
	}
	market, random := newMarket(engine.DefaultCatalogue(), size), rand.New(rand.NewPCG(fixtureSeed, 12))
	var pairs []pair
	for round := range r.options.Rounds {
		for i := range market {
			market[i].drift(random)
		}
		var result pair
		if err := r.retry(ctx, func() (err error) {
			result, err = r.refreshRound(ctx, fix, market, rate, round)
			return err
		}); err != nil {
			return err
		}
		pairs = append(pairs, result)
	}
	names := [2]string{"refresh", "quiet"}
	g.require(ratioOf(fmt.Sprintf("p99 of a round with a refresh, at %.0f requests/s", rate), "ns", pairs, names, p99), "≤", 1.5)
	return nil
}

// refreshRound measures the latency of a new node twice: before the update of all quotes (p.b), and during the update
// (p.a).
func (r *runner) refreshRound(ctx context.Context, fix *fixture, market []quoteSource, rate float64, round int) (p pair, err error) {
	pipe := filepath.Join(r.dir, fmt.Sprintf("refresh-%d.csv", round))
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		return p, fmt.Errorf("make a pipe: %w", err)
	}
	defer func() { err = errors.Join(err, os.Remove(pipe)) }()
	// Without O_RDWR, OpenFile would block until the node opens the pipe.
	writer, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		return p, fmt.Errorf("open the pipe: %w", err)
	}
	node, err := r.startNode(ctx, fix, "--import", pipe)
	if err != nil {
		return p, errors.Join(err, writer.Close())
	}
	defer func() { err = errors.Join(err, node.stop()) }()
	s := side{server: node, keys: fix.keys, mix: mixBestRates, rate: rate}
	if p.b, err = r.measure(ctx, s, round); err != nil {
		return p, errors.Join(err, writer.Close())
	}
	lines, now := []byte(observationHeader), time.Now()
	for i := range market {
		lines = market[i].appendLine(lines, market[i].source, now)
	}
	writeErr := make(chan error, 1)
	go func() { // writes the update while the caller measures
		writeErr <- errors.Join(writeAfter(ctx, r.options.Warmup+r.options.Measure/10, writer, lines), writer.Close())
	}()
	p.a, err = r.measureOnce(ctx, s, round)
	if writeErr := <-writeErr; writeErr != nil {
		return p, errors.Join(err, writeErr)
	}
	_, waitErr := node.processes[0].awaitLine(ctx, importedPrefix)
	return p, errors.Join(err, waitErr)
}

func writeAfter(ctx context.Context, delay time.Duration, file *os.File, text []byte) error {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	_, err := file.Write(text)
	return err
}
