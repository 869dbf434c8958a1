package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const (
	serverCore = 0 // every target runs there, in turn
	loadCore   = 1 // the load runs there
)

// side is a target with what it is asked.
type side struct {
	*target
	keys      []string
	questions []question
	rate      float64
}

// pair is one round: both sides, one directly after the other.
type pair struct{ a, b sample }

// compare measures two sides in turn, round by round, so that whatever else the machine does hits both. The order changes with each
// round. Answers other than 200 are an error: what was measured would not be what was asked for.
func (l *lab) compare(ctx context.Context, a, b side) ([]pair, error) {
	var pairs []pair
	for round := range l.options.Rounds {
		l.progress.next()
		var p pair
		order := []*sample{&p.a, &p.b}
		sides := []side{a, b}
		if round%2 == 1 {
			slices.Reverse(order)
			slices.Reverse(sides)
		}
		for i, into := range order {
			var err error
			if *into, err = l.measure(ctx, sides[i], uint64(round)); err != nil {
				return nil, err
			}
		}
		pairs = append(pairs, p)
	}
	return pairs, nil
}

// measure puts load on one side once.
func (l *lab) measure(ctx context.Context, s side, round uint64) (sample, error) {
	asker, err := newMix(benchHost, s.keys, s.questions, l.options.Seed+round)
	if err != nil {
		return sample{}, err
	}
	return l.sample(ctx, s.target, &load{
		address: s.address, asker: asker, seed: l.options.Seed + round, connections: l.options.Connections, rate: s.rate,
		warmup: l.options.Warmup, measure: l.options.Measure,
	})
}

// sample runs a load, and tells what it cost the target.
func (l *lab) sample(ctx context.Context, t *target, order *load) (s sample, err error) {
	order.begins = func() error { return s.count(ctx, t, -1) }
	order.ends = func() error { return s.count(ctx, t, +1) }
	err = pinned(loadCore, func() error {
		found, err := order.run(ctx)
		if err == nil {
			s.tally = *found
		}
		return err
	})
	if err != nil {
		return sample{}, fmt.Errorf("load on %s: %w", t.name, err)
	}
	for status, count := range s.statuses {
		if status != 200 {
			return sample{}, fmt.Errorf("load on %s: %d of %d answers have the status %d, want 200", t.name, count, s.answers, status)
		}
	}
	if s.lost > 0 || s.answers == 0 {
		return sample{}, fmt.Errorf("load on %s: %d answers, and %d lost", t.name, s.answers, s.lost)
	}
	return s, nil
}

// count adds what the target has used up until now, or with a sign of -1 takes it off.
func (s *sample) count(ctx context.Context, t *target, sign int) error {
	if len(t.processes) > 0 {
		cpu, err := cpuOf(t.processes)
		if err != nil {
			return err
		}
		s.cpu += time.Duration(sign) * cpu
	}
	if t.mallocs != nil {
		objects, err := t.mallocs(ctx)
		if err != nil {
			return err
		}
		s.mallocs += uint64(sign) * objects
	}
	return nil
}

// The figures of a sample.
func perSecond(s *sample) float64 { return float64(s.answers) / s.elapsed.Seconds() }
func cpuEach(s *sample) float64   { return float64(s.cpu.Nanoseconds()) / float64(s.answers) }
func p99(s *sample) float64       { return float64(s.latency.ValueAtQuantile(99)) }

// ratioOf is a figure of the first side as a part of that of the second: the median of the rounds' ratios.
func ratioOf(name, unit string, pairs []pair, names [2]string, figure func(*sample) float64) measure {
	m := measure{Name: name, Unit: "×", AbsoluteUnit: unit, Absolute: map[string]float64{}, Sides: map[string][]float64{}}
	for i := range pairs {
		a, b := figure(&pairs[i].a), figure(&pairs[i].b)
		m.Rounds = append(m.Rounds, a/b)
		m.Sides[names[0]] = append(m.Sides[names[0]], a)
		m.Sides[names[1]] = append(m.Sides[names[1]], b)
	}
	for side, figures := range m.Sides {
		m.Absolute[side] = median(figures)
	}
	m.Value = median(m.Rounds)
	return m
}

// bound gives a measure its goal, and the reason that is told when it falls short.
func (m measure) bound(want float64, atLeast bool, limit string) measure {
	m.Want, m.AtLeast = want, atLeast
	if !m.met() {
		m.Limit = limit
	}
	return m
}

// free is a measure that no goal bounds.
func (m measure) free() measure {
	m.Free = true
	return m
}

// median of figures, of which there is at least one.
func median(figures []float64) float64 {
	sorted := slices.Sorted(slices.Values(figures))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// curveOf is the distribution of all rounds of a side together.
func curveOf(goal, name string, pairs []pair, of func(*pair) *sample) curve {
	var all *hdrhistogram.Histogram
	for i := range pairs {
		one := of(&pairs[i]).latency
		if all == nil {
			all = hdrhistogram.Import(one.Export())
			continue
		}
		all.Merge(one)
	}
	return curve{goal, name, curvePoints(all)}
}
