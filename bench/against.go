//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tasard/tasard/bench/load"
)

// errNotAnswered is wrapped by the error of a load of which requests were refused or lost.
var errNotAnswered = errors.New("not answered with status 200")

// failuresPercentMax is the largest part of failed requests with which latencies still describe the node. With more of
// them they would describe how fast it refuses.
const failuresPercentMax = 1

// runLoad generates a load on a running node and prints the results.
func (s *settings) runLoad(ctx context.Context, out io.Writer) error {
	keys, err := readKeys(s.keys)
	if err != nil {
		return err
	}
	g := &load.Generator{
		Address: s.target, Requests: newMix(s.target, keys, mixes()[s.mix]), Connections: s.options.Connections, Rate: s.rate,
		Warmup: s.options.Warmup, Measure: s.options.Measure,
	}
	if err := g.Run(ctx); err != nil {
		return err
	}
	if _, err = io.WriteString(out, loadReport(&g.Results)); err != nil {
		return err
	}
	return loadError(&g.Results)
}

// loadReport describes a load.
func loadReport(r *load.Results) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d answers in %s, %.0f a second, %.1f MiB\n", r.Responses, r.Elapsed.Round(time.Millisecond), float64(r.Responses)/r.Elapsed.Seconds(), float64(r.Bytes)/(1<<20))
	fmt.Fprintf(&text, "the load generator used %.0f %% of a core; near 100 %% it is the limit, not the node\n", 100*r.CPU.Seconds()/r.Elapsed.Seconds())
	for _, status := range slices.Sorted(maps.Keys(r.Statuses)) {
		fmt.Fprintf(&text, "  %d: %d\n", status, r.Statuses[status])
	}
	if r.Lost > 0 {
		fmt.Fprintf(&text, "  lost: %d\n", r.Lost)
	}
	if failures(r)*100 > r.Intended*failuresPercentMax {
		return text.String()
	}
	for _, percentile := range []float64{50, 90, 99, 99.9, 99.99, 100} {
		fmt.Fprintf(&text, "  %6.2f %%  %s\n", percentile, time.Duration(r.Latency.ValueAtPercentile(percentile)).Round(time.Microsecond/10))
	}
	return text.String()
}

// failures is the number of requests without an answer of status 200.
func failures(r *load.Results) uint64 { return r.Intended - r.Statuses[http.StatusOK] }

// loadError says how many requests failed, and why a node fails them.
func loadError(r *load.Results) error {
	if failures(r) == 0 {
		return nil
	}
	var causes []string
	for _, status := range slices.Sorted(maps.Keys(r.Statuses)) {
		if status == http.StatusOK {
			continue
		}
		hint := ""
		if status == http.StatusTooManyRequests {
			hint = " (quotas: use -keys, or start the node with --limits=off)"
		}
		causes = append(causes, fmt.Sprintf("%d with %d%s", r.Statuses[status], status, hint))
	}
	if r.Lost > 0 {
		causes = append(causes, fmt.Sprintf("%d lost (connections were closed, or no answer came: --connections-per-address 0 allows more than 128)", r.Lost))
	}
	return fmt.Errorf("%d of %d requests were %w: %s", failures(r), r.Intended, errNotAnswered, strings.Join(causes, ", "))
}
