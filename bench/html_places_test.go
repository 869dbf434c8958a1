package main

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// shareOf reads a share of a drawing, in percent.
func shareOf(t testing.TB, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	if err != nil || !strings.HasSuffix(text, "%") {
		t.Fatalf("%q is no place", text)
	}
	return v
}

func TestBars_TheTintedSideKeepsTheBound(t *testing.T) {
	for name, tt := range map[string]struct {
		m    measure
		keep bool
	}{
		"at least, met":   {measure{Value: 0.95, Want: 0.9, AtLeast: true}, true},
		"at least, short": {measure{Value: 0.85, Want: 0.9, AtLeast: true}, false},
		"at most, met":    {measure{Value: 1.2, Want: 1.5}, true},
		"at most, short":  {measure{Value: 1.7, Want: 1.5}, false},
	} {
		bar := htmlGroups([]measure{tt.m}, "goal")[0].Rows[0].Bar
		end, from := shareOf(t, bar.Width), shareOf(t, bar.Zone)
		to := from + shareOf(t, bar.ZoneWidth)
		if within := from <= end && end <= to; within != tt.keep {
			t.Errorf("%s: the bar ends at %.1f %%, tinted is %.1f to %.1f %%", name, end, from, to)
		}
	}
}

func TestBars_OneScaleForOneUnit(t *testing.T) {
	groups := htmlGroups([]measure{
		{Unit: "ms", Value: 800, Want: 1000}, {Unit: "ms", Value: 200, Want: 300}, {Unit: "B", Value: 5, Free: true},
	}, "goal")
	if len(groups) != 2 || len(groups[0].Rows) != 2 {
		t.Fatalf("%d groups, want one for each unit", len(groups))
	}
	long, short := shareOf(t, groups[0].Rows[0].Bar.Width), shareOf(t, groups[0].Rows[1].Bar.Width)
	if ratio := long / short; ratio < 3.99 || ratio > 4.01 {
		t.Errorf("800 ms is drawn %.2f times as long as 200 ms", ratio)
	}
	if bar := groups[1].Rows[0].Bar; bar.Bound != "" || bar.Zone != "" {
		t.Errorf("a measure without a bound has one: %+v", bar)
	}
}

func TestBars_Ticks(t *testing.T) {
	for top, want := range map[float64]string{
		1: "0 0.2 0.4 0.6 0.8 1.0", 0.97: "0 0.2 0.4 0.6 0.8", 1.62: "0 0.5 1.0 1.5", 23.4: "0 5 10 15 20", 1080: "0 500 1,000",
		198_000: "0 50k 100k 150k", 2.5e6: "0 0.5M 1.0M 1.5M 2.0M 2.5M", 0.004: "0 0.001 0.002 0.003 0.004", 3e9: "0 1G 2G 3G",
	} {
		var texts []string
		for _, tick := range axisTicks(top) {
			texts = append(texts, tick.Text)
		}
		if got := strings.Join(texts, " "); got != want {
			t.Errorf("up to %v: %s, want %s", top, got, want)
		}
	}
}

func TestCurves_PlacesRise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		points := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) point {
			return point{
				Percentile: rapid.SampledFrom(curvePercentiles()).Draw(t, "percentile"),
				Latency:    time.Duration(rapid.Int64Range(1, int64(time.Minute)).Draw(t, "latency")),
			}
		}), 2, 20).Draw(t, "points")
		s := newScale([]curve{{Points: points}})
		for _, a := range points {
			for _, b := range points {
				if a.Percentile < b.Percentile && s.x(a.Percentile) >= s.x(b.Percentile) {
					t.Fatalf("p%v is not left of p%v", a.Percentile, b.Percentile)
				}
				if a.Latency < b.Latency && s.y(a.Latency) < s.y(b.Latency) {
					t.Fatalf("%v is not below %v", a.Latency, b.Latency)
				}
			}
			if x, y := s.x(a.Percentile), s.y(a.Latency); x < 0 || x > 1 || y < -1e-9 || y > 1+1e-9 {
				t.Fatalf("%+v is drawn at %v, %v: outside", a, x, y)
			}
		}
	})
}

func TestCurves_Axes(t *testing.T) {
	s := newScale([]curve{{Points: []point{{50, 70 * time.Microsecond}, {99.9, time.Millisecond}, {100, 4100 * time.Microsecond}}}})
	texts := func(ticks []htmlTick) string {
		var all []string
		for _, tick := range ticks {
			all = append(all, tick.Text)
		}
		return strings.Join(all, "|")
	}
	if got, want := texts(s.percentileTicks()), "0|50|90|99|99.9|max"; got != want {
		t.Errorf("percentiles %s, want %s", got, want)
	}
	if got, want := texts(s.latencyTicks()), "50 µs|100 µs|200 µs|500 µs|1 ms|2 ms|5 ms"; got != want {
		t.Errorf("latencies %s, want %s", got, want)
	}
	if first, last := s.latencyTicks()[0].At, s.latencyTicks()[6].At; first != "100.00%" || last != "0.00%" {
		t.Errorf("the axis goes from %s to %s", first, last)
	}
}

func TestCurves_OneChartForAGoal(t *testing.T) {
	charts := htmlCharts([]curve{
		{Goal: "F5", Name: "node", Points: []point{{100, 3}, {50, 1}}}, {Goal: "F12", Name: "quiet", Points: []point{{50, 1}}},
		{Goal: "F5", Name: "bare", Points: []point{{50, 1}}}, {Goal: "F5", Name: "nothing"}, {Goal: "F8", Name: "nothing"},
	})
	if len(charts) != 2 || len(charts[0].Lines) != 2 || len(charts[1].Lines) != 1 {
		t.Fatalf("charts %+v", charts)
	}
	if got, want := charts[0].About, "node: p50 1 ns, max 3 ns; bare: p50 1 ns."; got != want {
		t.Errorf("spoken: %q, want %q", got, want)
	}
	if charts[0].Lines[0].Style == charts[0].Lines[1].Style {
		t.Error("two lines look the same")
	}
	if points := strings.Fields(charts[0].Lines[0].Points); !strings.HasPrefix(points[1], "1000.0,") {
		t.Errorf("the points are not in order: %q", points)
	}
}
