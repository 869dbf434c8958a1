//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tasard/tasard/engine"
)

const (
	startAccounts = 100_000
	fewAccounts   = 100
	importLines   = 300_000
	growthFactor  = 10
	// repeatsMax is the largest number of repetitions of slow measurements, such as starts and imports.
	repeatsMax = 7
	// firstMeasure is short, so that few accounts send a second request.
	firstMeasure = 400 * time.Millisecond
)

// measureFirstRequests restarts the node in each round, so that most requests are the first ones of their accounts.
func measureFirstRequests(ctx context.Context, r *runner, s *scenario) error {
	f, err := r.fixture(fixtureSize{institutions: 44, currencies: 8, accounts: s.accounts, days: 1})
	if err != nil {
		return err
	}
	standard, keys, err := r.standardNode(ctx)
	if err != nil {
		return err
	}
	templates := mixes()[s.mix]
	bare, err := r.startBaseline(ctx, s, side{server: standard, keys: keys}, templates)
	if err != nil {
		return err
	}
	first := func(on *server) (sample, error) {
		requests := newMix(benchHost, f.keys, templates)
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
			p.b, err = first(bare)
		}
		if err = errors.Join(err, node.stop()); err != nil {
			return err
		}
		pairs = append(pairs, p)
	}
	r.addRatios(s, "", pairs, [2]string{"node", bareName})
	return nil
}

// measureLatency compares the latency of the node and of the bare server. Both get half of the requests per second that
// the bare server can answer.
func measureLatency(ctx context.Context, r *runner, s *scenario) error {
	node, bare, err := r.sides(ctx, s)
	if err != nil {
		return err
	}
	rate, err := r.halfCapacity(ctx, bare)
	if err != nil {
		return err
	}
	node.rate, bare.rate = rate, rate
	pairs, err := r.compare(ctx, node, bare)
	if err == nil {
		r.addRatios(s, fmt.Sprintf("at %.0f requests/s: ", rate), pairs, [2]string{"node", bareName})
	}
	return err
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

// measureStartup measures the time from the start of the process until a response with status 200. It kills each node
// instead of stopping it, so that the data directory has the same contents at each start.
func measureStartup(ctx context.Context, r *runner, _ *scenario) error {
	f, err := r.fixture(fixtureSize{institutions: 44, currencies: 8, accounts: startAccounts, days: 1})
	if err != nil {
		return err
	}
	durations := measurement{name: "to the first answer", unit: " ms", want: 500}
	for range min(r.options.Rounds, repeatsMax) {
		node, err := startNode(ctx, r.tasard, f, serverCore)
		if err != nil {
			return err
		}
		node.kill()
		durations.rounds = append(durations.rounds, float64(node.startDuration.Microseconds())/1000)
	}
	r.measured = append(r.measured, durations)
	return nil
}

// measureImport measures the command tasard import. All quotes come from one aggregator, a source that publishes the
// rates of several institutions. Each round imports the file into a new directory.
func measureImport(ctx context.Context, r *runner, _ *scenario) error {
	market, file := newMarket(engine.DefaultCatalogue(), standardSize()), filepath.Join(r.dir, "import.csv")
	// An aggregator publishes the rates of one institution together.
	slices.SortStableFunc(market, func(a, b quoteSource) int { return strings.Compare(a.source, b.source) })
	updates := importLines/len(market) + 1
	age := func(line int) time.Duration { return time.Duration(updates-line/len(market)) * time.Minute }
	if err := writeObservations(file, market, updates*len(market), "list", age); err != nil {
		return err
	}
	speed := measurement{name: "observations a second, validated and durable", unit: "/s", want: 50_000, least: true}
	for round := range min(r.options.Rounds, repeatsMax) {
		start, dir := time.Now(), filepath.Join(r.dir, fmt.Sprintf("import-%d", round))
		process, err := startProcess("tasard import", serverCore, r.tasard, "import", "--data", dir, file)
		if err == nil {
			err = process.awaitExit(ctx)
		}
		if err != nil {
			return err
		}
		speed.rounds = append(speed.rounds, float64(updates*len(market))/time.Since(start).Seconds())
	}
	r.measured = append(r.measured, speed)
	return os.Remove(file)
}

// measureGrowth compares a small node with nodes that have more institutions, currencies or accounts. All requests
// are for the same page.
func measureGrowth(ctx context.Context, r *runner, s *scenario) error {
	base := fixtureSize{institutions: 44, currencies: 8, accounts: fewAccounts, days: 7}
	start := func(size fixtureSize) (side, error) {
		f, err := r.fixture(size)
		if err != nil {
			return side{}, err
		}
		node, err := r.track(startNode(ctx, r.tasard, f, serverCore))
		return side{server: node, keys: f.keys, templates: mixes()[s.mix]}, err
	}
	small, err := start(base)
	if err != nil {
		return err
	}
	for name, size := range map[string]fixtureSize{
		"institutions": {growthFactor * base.institutions, base.currencies, base.accounts, base.days},
		"currencies":   {base.institutions, growthFactor * base.currencies, base.accounts, base.days},
		"accounts":     {base.institutions, base.currencies, 1000 * base.accounts, base.days},
	} {
		large, err := start(size)
		if err == nil && name == "accounts" {
			err = r.wakeAccounts(ctx, large)
		}
		if err != nil {
			return err
		}
		pairs, err := r.compare(ctx, large, small)
		if err != nil {
			return err
		}
		r.addRatios(s, "more "+name+", ", pairs, [2]string{"more", "base"})
	}
	return nil
}

// measureRefresh compares the latency of a node with and without an update of all quotes, at half of its capacity. The
// node runs on all cores.
func measureRefresh(ctx context.Context, r *runner, s *scenario) error {
	size := standardSize()
	size.accounts = r.options.Accounts + 1 // data of its own: the standard node holds the lock of the other
	f, err := r.fixture(size)
	if err != nil {
		return err
	}
	node, err := r.track(startNode(ctx, r.tasard, f, anyCore))
	if err != nil {
		return err
	}
	on := side{server: node, keys: f.keys, templates: mixes()[s.mix]}
	if on.rate, err = r.halfCapacity(ctx, on); err != nil {
		return err
	}
	var pairs []pair
	market, file := newMarket(engine.DefaultCatalogue(), size), filepath.Join(r.dir, "refresh.csv")
	for round := range r.options.Rounds {
		var p pair
		if p.b, err = r.measure(ctx, on, round); err != nil {
			return err
		}
		for i := range market {
			market[i].mid += round // another value each time
		}
		if err := writeObservations(file, market, len(market), "", func(int) time.Duration { return 0 }); err != nil {
			return err
		}
		update, err := startProcess("tasard import", anyCore, r.tasard, "import", "--data", f.dir, file)
		if err != nil {
			return err
		}
		if p.a, err = r.measure(ctx, on, round); err != nil {
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
