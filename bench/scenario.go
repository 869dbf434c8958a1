package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// scenario is one of the goals of performance, and how it is measured.
type scenario struct {
	goal, title string
	// comparisons is how many it makes, each of all rounds.
	comparisons int
	run         func(ctx context.Context, l *lab, g *goal) error
}

// scenarios is the table of goals.
func scenarios() []scenario {
	return []scenario{
		{"F1", "the ten best rates, with a key, beside the bare server", 1, measureF1},
		{"F2", "a full page beside the bare server", 2, measureF2},
		{"F3", "every other operation beside the bare server", 6, measureF3},
		{"F4", "allocations of a request, warm", 1, measureF4},
		{"F5", "latency at half of the bare server's capacity", 2, measureF5},
		{"F6", "beside nginx with the same bytes as a file", 1, measureF6},
		{"F7", "beside net/http with PostgreSQL", 2, measureF7},
		{"F8", "from the start to the first answer", 1, measureF8},
		{"F9", "memory for accounts that were active today", 1, measureF9},
		{"F10", "observations taken in, validated, durable", 1, measureF10},
		{"F11", "the same page with ten and a thousand times more of all", 3, measureF11},
		{"F12", "reads while a refresh of every source is taken in", 1, measureF12},
	}
}

// chosen are the scenarios of a list of goals such as F1,F12; "" is all.
func chosen(list string) ([]scenario, error) {
	all := scenarios()
	if list == "" {
		return all, nil
	}
	var some []scenario
	for _, name := range strings.Split(list, ",") {
		at := slices.IndexFunc(all, func(s scenario) bool { return strings.EqualFold(s.goal, strings.TrimSpace(name)) })
		if at < 0 {
			return nil, fmt.Errorf("-goals: no goal %q; there are F1 to F%d", name, len(all))
		}
		some = append(some, all[at])
	}
	slices.SortFunc(some, func(a, b scenario) int {
		return slices.IndexFunc(all, func(s scenario) bool { return s.goal == a.goal }) -
			slices.IndexFunc(all, func(s scenario) bool { return s.goal == b.goal })
	})
	return slices.CompactFunc(some, func(a, b scenario) bool { return a.goal == b.goal }), nil
}

// stages tells the progress what is to come.
func stages(list []scenario, o *runOptions) []stage {
	var all []stage
	for _, s := range list {
		all = append(all, stage{goal: s.goal, title: s.title, rounds: s.comparisons * o.Rounds, each: 2 * (o.Warmup + o.Measure + 20*time.Millisecond)})
	}
	return all
}
