package main

import (
	"slices"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

func sampleOf(answers uint64, cpu, latency time.Duration) sample {
	h := hdrhistogram.New(1, int64(time.Minute), 3)
	_ = h.RecordValues(int64(latency), int64(answers))
	return sample{tally: tally{answers: answers, elapsed: time.Second, latency: h}, cpu: cpu}
}

// A figure is the median of the rounds' ratios, not the ratio of the medians: a slow moment of the machine hits both sides of a round.
func TestRatio_OfRounds(t *testing.T) {
	pairs := []pair{
		{sampleOf(90, 900, 9), sampleOf(100, 800, 6)},
		{sampleOf(9, 90, 90), sampleOf(10, 80, 60)}, // the machine was busy
		{sampleOf(180, 3600, 5), sampleOf(100, 1000, 5)},
		{sampleOf(60, 600, 9), sampleOf(100, 1000, 6)},
	}
	for _, tt := range []struct {
		figure             func(*sample) float64
		rounds             []float64
		median, node, bare float64
	}{
		{perSecond, []float64{0.9, 0.9, 1.8, 0.6}, 0.9, 75, 100},
		{cpuEach, []float64{1.25, 1.25, 2, 1}, 1.25, 10, 9},
		{p99, []float64{1.5, 1.5, 1, 1.5}, 1.5, 9, 6},
	} {
		m := ratioOf("x", "/s", pairs, [2]string{"node", "bare"}, tt.figure)
		if !slices.Equal(m.Rounds, tt.rounds) || m.Value != tt.median || m.Absolute["node"] != tt.node || m.Absolute["bare"] != tt.bare {
			t.Errorf("%v with the median %v, of %v; want %+v", m.Rounds, m.Value, m.Absolute, tt)
		}
	}
	if got := median([]float64{5, 1, 3}); got != 3 {
		t.Errorf("the median of 5, 1 and 3 is %v", got)
	}
	if all := curveOf("F5", "node", pairs, func(p *pair) *sample { return &p.a }); all.Points[len(all.Points)-1].Latency != 90 {
		t.Errorf("the slowest of all rounds took 90 ns: %v", all.Points)
	}
}

func TestMeasure_Bounds(t *testing.T) {
	for _, test := range []struct {
		value, want  float64
		atLeast, met bool
	}{
		{0.9, 0.9, true, true}, {0.8999, 0.9, true, false}, {1.12, 1.12, false, true}, {1.13, 1.12, false, false}, {0, 0, false, true},
	} {
		m := measure{Value: test.value}.bound(test.want, test.atLeast, "why")
		if m.met() != test.met || (m.Limit == "") != test.met {
			t.Errorf("%+v: met %v, limit %q", test, m.met(), m.Limit)
		}
		if free := m.free(); !free.met() {
			t.Errorf("%+v: what has no bound misses it", test)
		}
	}
}
