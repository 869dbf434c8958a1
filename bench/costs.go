//go:build linux

package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// cost is the work that one request causes in a node. Its figures vary little between runs and machines.
type cost struct {
	// Calls is the number of successful system calls, by name. Calls with which threads wait do not count (see
	// waitCalls).
	Calls map[string]float64 `json:"calls,omitempty"`
	// Failed is the number of failed system calls. Most of them are reads from a connection without data.
	Failed float64 `json:"failed"`
	// Bytes is the number of bytes that the client receives.
	Bytes float64 `json:"bytes"`
	// Allocations is the number of objects that the node allocates. It is the lowest number that any round (repetition
	// of the measurement) has found.
	Allocations float64 `json:"allocations"`
	// CPU is the node's CPU time, divided by the CPU time of the bare server in the same round. The bare server only
	// sends the same response from memory.
	CPU spread `json:"cpu"`
}

// spread shows how a figure varies between rounds.
type spread struct {
	Low    float64 `json:"low"` // lower quartile
	Median float64 `json:"median"`
	High   float64 `json:"high"` // upper quartile
}

func spreadOf(rounds []float64) spread {
	sorted := slices.Sorted(slices.Values(rounds))
	return spread{hundredths(sorted[len(sorted)/4]), hundredths(median(rounds)), hundredths(sorted[len(sorted)-1-len(sorted)/4])}
}

// hundredths rounds a figure to two decimals.
func hundredths(figure float64) float64 { return math.Round(figure*100) / 100 }

// costList maps the name of a mix (a set of requests, see mix.go) to the cost of one request of this mix.
type costList map[string]cost

// Tolerances: a measured cost may exceed the accepted cost (that in .ci/costs.json) by this much. They allow for the
// background work of the node on a busy machine. They are small enough to find one more system call or allocation in
// every second request.
const (
	callsRiseMax       = 0.1 // applies to the count of each system call by itself
	failedRiseMax      = 0.5
	bytesRiseMax       = 16 // numbers in a response vary in length
	allocationsRiseMax = 0.4
	// cpuRiseMax is not a difference but a factor: the measured ratio of CPU times may be this many times the accepted
	// one. The factor is large, because on a busy machine the ratio of the same program varied from 1.18 to 1.50.
	cpuRiseMax = 1.25
)

// exceeded returns a line for each measured cost that exceeds the accepted cost.
func (accepted costList) exceeded(measured costList) (lines []string) {
	addLine := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for _, name := range slices.Sorted(maps.Keys(measured)) {
		want, known := accepted[name]
		if !known {
			addLine("%s: no cost is accepted yet; make bench-accept", name)
			continue
		}
		got := measured[name]
		for _, call := range slices.Sorted(maps.Keys(got.Calls)) {
			if got.Calls[call] > want.Calls[call]+callsRiseMax {
				addLine("%s: %.2f system calls %s a request, %.2f are accepted", name, got.Calls[call], call, want.Calls[call])
			}
		}
		if got.Failed > want.Failed+failedRiseMax {
			addLine("%s: %.2f system calls that fail a request, %.2f are accepted", name, got.Failed, want.Failed)
		}
		if got.Bytes > want.Bytes+bytesRiseMax {
			addLine("%s: %.0f bytes an answer, %.0f are accepted", name, got.Bytes, want.Bytes)
		}
		if got.Allocations > want.Allocations+allocationsRiseMax {
			addLine("%s: %.2f allocations a request, %.2f are accepted", name, got.Allocations, want.Allocations)
		}
		// Report a rise only if even the lower quartile is above the limit. A smaller rise may be noise.
		if limit := want.CPU.High * cpuRiseMax; got.CPU.Low > limit {
			addLine("%s: %.2f to %.2f times the CPU time of the bare server, at most %.2f is accepted", name, got.CPU.Low, got.CPU.High, limit)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(accepted)) {
		if _, ok := measured[name]; !ok {
			addLine("%s has an accepted cost and was not measured", name)
		}
	}
	return lines
}

func sum(calls map[string]float64) (total float64) {
	for _, count := range calls {
		total += count
	}
	return total
}
