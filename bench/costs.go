//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
)

// cost is what one request takes, in quantities that repeat on every machine.
type cost struct {
	// Calls are successful system calls by name, without those that only wait or wake (waitCalls), which depend on
	// other activity.
	Calls map[string]float64 `json:"calls,omitempty"`
	// Failed are failed system calls, usually reads of a connection without data.
	Failed float64 `json:"failed"`
	// Bytes are received by the client.
	Bytes float64 `json:"bytes"`
	// Allocations are all objects that the process allocates, in the round with the fewest.
	Allocations float64 `json:"allocations"`
	// CPU is the CPU time relative to the bare server's, measured alternately.
	CPU spread `json:"cpu"`
}

// spread summarizes several rounds.
type spread struct {
	Low    float64 `json:"low"` // lower quartile
	Median float64 `json:"median"`
	High   float64 `json:"high"` // upper quartile
}

func spreadOf(rounds []float64) spread {
	sorted := slices.Sorted(slices.Values(rounds))
	return spread{hundredths(sorted[len(sorted)/4]), hundredths(median(rounds)), hundredths(sorted[len(sorted)-1-len(sorted)/4])}
}

// hundredths rounds a figure to what repeats of it.
func hundredths(figure float64) float64 { return math.Round(figure*100) / 100 }

// costList has the costs of requests by the name of the mix.
type costList map[string]cost

// Tolerances over the accepted costs: less than one call or allocation more for every second request, and more than
// the node's background work adds on a busy machine.
const (
	callsRiseMax       = 0.1 // for each name
	failedRiseMax      = 0.5
	bytesRiseMax       = 16 // numbers vary in length
	allocationsRiseMax = 0.4
	// cpuRiseMax is coarse: on a busy machine the ratio of one and the same program varied from 1.18 to 1.50.
	cpuRiseMax = 1.25
)

// problems describes what exceeds the accepted costs.
func (accepted costList) problems(found costList) (lines []string) {
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for _, name := range slices.Sorted(maps.Keys(found)) {
		was, known := accepted[name]
		if !known {
			say("%s: no cost is accepted yet; make bench-accept", name)
			continue
		}
		is := found[name]
		for _, call := range slices.Sorted(maps.Keys(is.Calls)) {
			if is.Calls[call] > was.Calls[call]+callsRiseMax {
				say("%s: %.2f system calls %s a request, %.2f are accepted", name, is.Calls[call], call, was.Calls[call])
			}
		}
		if is.Failed > was.Failed+failedRiseMax {
			say("%s: %.2f system calls that fail a request, %.2f are accepted", name, is.Failed, was.Failed)
		}
		if is.Bytes > was.Bytes+bytesRiseMax {
			say("%s: %.0f bytes an answer, %.0f are accepted", name, is.Bytes, was.Bytes)
		}
		if is.Allocations > was.Allocations+allocationsRiseMax {
			say("%s: %.2f allocations a request, %.2f are accepted", name, is.Allocations, was.Allocations)
		}
		if limit := was.CPU.High * cpuRiseMax; is.CPU.Low > limit { // a smaller rise may be noise
			say("%s: %.2f to %.2f times the CPU time of the bare server, at most %.2f is accepted", name, is.CPU.Low, is.CPU.High, limit)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(accepted)) {
		if _, measured := found[name]; !measured {
			say("%s has an accepted cost and was not measured", name)
		}
	}
	return lines
}

func sum(calls map[string]float64) (all float64) {
	for _, count := range calls {
		all += count
	}
	return all
}

// table formats costs beside the accepted ones.
func (accepted costList) table(found costList) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%-8s %22s %18s %18s %24s\n", "request", "system calls", "bytes", "allocations", "CPU of the bare server")
	for _, name := range slices.Sorted(maps.Keys(found)) {
		was, is := accepted[name], found[name]
		calls := "not counted"
		if len(is.Calls) > 0 {
			calls = fmt.Sprintf("%.2f (%.2f)", sum(is.Calls), sum(was.Calls))
		}
		fmt.Fprintf(&text, "%-8s %22s %10.0f (%5.0f) %10.2f (%5.2f) %10.2f, %.2f–%.2f (%.2f)\n", name, calls,
			is.Bytes, was.Bytes, is.Allocations, was.Allocations, is.CPU.Median, is.CPU.Low, is.CPU.High, was.CPU.Median)
		if len(is.Calls) > 0 {
			fmt.Fprintf(&text, "%9s%-14s %7.2f (%.2f)\n", "", "failed", is.Failed, was.Failed)
		}
		for _, call := range slices.Sorted(maps.Keys(is.Calls)) {
			fmt.Fprintf(&text, "%9s%-14s %7.2f (%.2f)\n", "", call, is.Calls[call], was.Calls[call])
		}
	}
	text.WriteString("in parentheses: what is accepted\n")
	return text.String()
}

// readCosts reads a file of costs.
func readCosts(path string) (list costList, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the accepted costs: %w", err)
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("read the accepted costs in %s: %w", path, err)
	}
	return list, nil
}

func (accepted costList) write(path string) error {
	text, err := json.MarshalIndent(accepted, "", "  ")
	if err == nil {
		err = os.WriteFile(path, append(text, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("keep the accepted costs: %w", err)
	}
	return nil
}
