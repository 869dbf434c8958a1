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
	}
	names := [2]string{"node", "bare"}
	requests := ratioOf("requests/s", "/s", pairs, names, perSecond)
	if requests.Value != 0.9 || !slices.Equal(requests.Rounds, []float64{0.9, 0.9, 1.8}) {
		t.Errorf("requests: %v of %v", requests.Value, requests.Rounds)
	}
	if requests.Absolute["node"] != 90 || requests.Absolute["bare"] != 100 || requests.AbsoluteUnit != "/s" {
		t.Errorf("absolute: %v", requests.Absolute)
	}
	if cpu := ratioOf("CPU", "ns", pairs, names, cpuEach); cpu.Rounds[0] != 10.0/8 || cpu.Value != 1.25 {
		t.Errorf("CPU: %v", cpu.Rounds)
	}
	if p := ratioOf("p99", "ns", pairs, names, p99); p.Value != 1.5 {
		t.Errorf("p99: %v", p.Rounds)
	}
}

func TestMeasure_Bounds(t *testing.T) {
	tests := []struct {
		value, want float64
		atLeast     bool
		met         bool
	}{
		{0.9, 0.9, true, true}, {0.8999, 0.9, true, false}, {1.12, 1.12, false, true}, {1.13, 1.12, false, false}, {0, 0, false, true},
	}
	for _, test := range tests {
		m := measure{Value: test.value}.bound(test.want, test.atLeast, "why")
		if m.met() != test.met || (m.Limit == "") != test.met {
			t.Errorf("%+v: met %v, limit %q", test, m.met(), m.Limit)
		}
	}
	if m := (measure{}).free(); !m.met() {
		t.Error("what has no bound misses it")
	}
}

func TestMedian(t *testing.T) {
	for _, test := range []struct {
		figures []float64
		want    float64
	}{{[]float64{3}, 3}, {[]float64{3, 1}, 2}, {[]float64{5, 1, 3}, 3}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := median(test.figures); got != test.want {
			t.Errorf("median of %v is %v, want %v", test.figures, got, test.want)
		}
	}
}
