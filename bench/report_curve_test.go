package main

import (
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"pgregory.net/rapid"
)

func TestCurvePoints_NothingOfNothing(t *testing.T) {
	if got := curvePoints(nil); got != nil {
		t.Errorf("of no histogram: %v", got)
	}
	if got := curvePoints(hdrhistogram.New(1, 1000, 3)); got != nil {
		t.Errorf("of an empty histogram: %v", got)
	}
}

func TestCurvePoints_OfEvenSteps(t *testing.T) {
	h := hdrhistogram.New(1, int64(time.Minute), 3)
	for i := range int64(1000) {
		if err := h.RecordValue((i + 1) * 1000); err != nil {
			t.Fatal(err)
		}
	}
	points := map[float64]time.Duration{}
	for _, p := range curvePoints(h) {
		points[p.Percentile] = p.Latency
	}
	for percentile, want := range map[float64]time.Duration{
		0: time.Microsecond, 50: 500 * time.Microsecond, 99: 990 * time.Microsecond, 99.9: 999 * time.Microsecond, 100: time.Millisecond,
	} {
		if got, there := points[percentile]; !there || (got-want).Abs() > want/500 {
			t.Errorf("p%v is %v, want about %v", percentile, got, want)
		}
	}
	for _, percentile := range []float64{99.95, 99.99, 99.999} {
		if got, there := points[percentile]; there {
			t.Errorf("of 1,000 answers there is a p%v: %v", percentile, got)
		}
	}
}

func TestCurvePoints_Rise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := hdrhistogram.New(1, int64(time.Minute), 3)
		for _, v := range rapid.SliceOfN(rapid.Int64Range(1, int64(time.Minute)), 1, 3000).Draw(t, "latencies") {
			if err := h.RecordValue(v); err != nil {
				t.Fatal(err)
			}
		}
		points := curvePoints(h)
		for i := 1; i < len(points); i++ {
			if points[i].Percentile <= points[i-1].Percentile || points[i].Latency < points[i-1].Latency {
				t.Fatalf("%v comes after %v", points[i], points[i-1])
			}
		}
		if last := points[len(points)-1]; last.Percentile != 100 || int64(last.Latency) != h.Max() {
			t.Fatalf("the last point is %v, the slowest answer %d", last, h.Max())
		}
	})
}
