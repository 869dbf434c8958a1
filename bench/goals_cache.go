//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/tasard/tasard/bench/load"
)

// requestsMetric counts the requests that a node has answered.
const requestsMetric = "tasard_http_requests_total"

// Each load on the cache has seeds of its own. Otherwise the random amounts of a load would be those of an earlier one,
// and the cache would have their responses.
const compareSeed, reachSeed = 1000, 2000

// measureCache compares a node behind a cache with the same node. It has no limits, so the cache may share its
// responses among all callers. CPU time includes that of the cache. The figures have no bound: they help operators to
// choose.
func measureCache(ctx context.Context, r *runner, g *goal) error {
	direct, err := r.startSide(ctx, "cache", standardSize(), "--limits=off")
	if err != nil {
		return err
	}
	cache, err := r.track(startNginxCache(ctx, direct.server, serverCore))
	if err != nil {
		return err
	}
	both := &server{name: cache.name, address: cache.address, processes: append(cache.processes[:1:1], direct.processes...)}
	for _, mix := range []string{mixBestRates, mixAll} {
		direct.keys, direct.mix, direct.rate, direct.seed = nil, mix, 0, 0
		cached := direct
		cached.server = both
		rate, err := r.halfCapacity(ctx, cached)
		if err != nil {
			return err
		}
		direct.rate, direct.seed = rate, compareSeed
		cached.rate, cached.seed = rate, compareSeed
		pairs, err := r.compare(ctx, cached, direct)
		if err != nil {
			return err
		}
		reach, err := r.reachNode(ctx, cached, direct.server)
		if err != nil {
			return err
		}
		names, label := [2]string{"cached", "node"}, fmt.Sprintf(", %s, at %.0f requests/s", mix, rate)
		g.add(measurement{Name: "of 1,000 requests to a cache reach the node, " + mix, Rounds: reach})
		g.add(ratioOf("CPU time of a request, cache and node"+label, "ns", pairs, names, cpuPerRequest))
		g.add(ratioOf("median"+label, "ns", pairs, names, p50))
	}
	return nil
}

// reachNode returns how many of 1,000 requests to a cache reach the node behind it, for each round.
func (r *runner) reachNode(ctx context.Context, cached side, node *server) (reach []float64, err error) {
	for round := range r.options.Rounds {
		before, err := node.metric(ctx, requestsMetric)
		if err != nil {
			return nil, err
		}
		group := &load.Clients{Requests: newMix(benchHost, nil, mixes()[cached.mix]), Connections: r.options.Connections, Rate: cached.rate}
		s, err := r.sample(ctx, cached.server, &load.Generator{Groups: []*load.Clients{group}, Seed: uint64(reachSeed + round), Measure: r.options.Measure})
		after, metricErr := node.metric(ctx, requestsMetric)
		if err = errors.Join(err, metricErr); err != nil {
			return nil, err
		}
		reach = append(reach, 1000*(after-before)/float64(s.Responses))
	}
	return reach, nil
}
