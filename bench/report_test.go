package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// sampleReport is a report with one of everything: ratios, counts and times, met, short and without bound, a curve, skipped ones.
func sampleReport() *report {
	rounds := []float64{0.93, 0.94, 0.92, 0.95}
	return &report{
		Started: time.Date(2026, time.November, 21, 18, 4, 9, 0, time.UTC),
		Took:    11*time.Minute + 42*time.Second,
		Commit:  "4f2a9c1d7b3e5f60718293a4b5c6d7e8f9012345",
		Changed: true,
		Machine: machine{CPU: "AMD EPYC 7B13", Cores: 2, Memory: 8_324_030_464, Kernel: "6.1.0-44-cloud-amd64", Go: "go1.26.8"},
		Options: runOptions{Rounds: 4, Measure: 4 * time.Second, Warmup: time.Second, Connections: 64, Accounts: 1000, Seed: 20261121},
		Goals: []goal{
			{ID: "F1", Title: "The best ten rates, with a key", Measures: []measure{
				{Name: "requests/s, node to bare", Unit: "×", Value: 0.935, Rounds: rounds, Want: 0.9, AtLeast: true, AbsoluteUnit: "/s",
					Absolute: map[string]float64{"node": 27345, "bare": 29512}, Sides: map[string][]float64{"node": {27345}, "bare": {29512}}},
				{Name: "CPU per request, node to bare", Unit: "×", Value: 1.1504, Rounds: []float64{1.15, 1.16}, Want: 1.12, AbsoluteUnit: "ns",
					Absolute: map[string]float64{"node": 37120, "bare": 32200}, Limit: "half of the difference is the look-up of the key"},
			}},
			{ID: "F2", Title: "The full page", Measures: []measure{{Name: "requests/s, gzip", Unit: "×", Value: 0.899, Want: 0.9, AtLeast: true}}},
			{ID: "F4", Title: "Allocations of a warm request", Measures: []measure{
				{Name: "allocations", Unit: "allocations"}, {Name: "bytes", Unit: "B", Value: 14.25, Rounds: []float64{14, 14.5}, Free: true},
			}},
			{ID: "F7", Title: "A figure never looks like the bound that it misses", Measures: []measure{
				{Name: "above", Unit: "×", Value: 1.1201, Want: 1.12},
				{Name: "below", Unit: "×", Value: 9.996, Want: 10, AtLeast: true, Rounds: []float64{5, 1, 4, 2, 3}},
				{Name: "at it", Unit: "×", Value: 0.9, Want: 0.9, AtLeast: true, Rounds: []float64{4, 3, 2, 1}},
				{Name: "far above", Unit: "×", Value: 34.26, Want: 10, AtLeast: true, Rounds: []float64{7}},
				{Name: "hardly any", Unit: "allocations", Value: 0.0004},
				{Name: "long", Unit: "ms", Value: 1000.2, Want: 1000},
				{Name: "many", Unit: "/s", Value: 1234567.8, Want: 50000, AtLeast: true},
				{Name: "fewer than none", Value: -1500, Free: true},
			}},
			{ID: "F6", Title: "Beside nginx with the same bytes as a file"},
		},
		Curves:  []curve{{Goal: "F5", Name: "node at 12,000/s", Points: []point{{50, 80 * time.Microsecond}, {99.9, time.Millisecond}}}},
		Skipped: []skip{{Name: "F6, nginx", Why: "nginx is not installed: apt-get install nginx-light"}},
	}
}

// TestReport_Golden holds both forms of the report: figures, verdicts, reasons, and what was not measured.
func TestReport_Golden(t *testing.T) {
	r := sampleReport()
	if !r.short() || (&report{Goals: []goal{{Measures: r.Goals[2].Measures}}}).short() {
		t.Error("a report with a bound that is missed is short, another one is not")
	}
	for name, write := range map[string]func(io.Writer) error{"report.txt": r.writeText, "report.json": r.writeJSON} {
		var got bytes.Buffer
		if err := write(&got); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil || got.String() != string(want) {
			t.Errorf("differs from %s (%v); make golden rewrites it:\n%s", path, err, got.String())
		}
		var again report
		if err := json.Unmarshal(got.Bytes(), &again); name == "report.json" && (err != nil || !reflect.DeepEqual(&again, r)) {
			t.Errorf("read again it is %+v: %v", again, err)
		}
	}
}

// What is no number is refused by name, and an error of writing is told.
func TestReport_Refuses(t *testing.T) {
	for name, plant := range map[string]func(*measure){
		"the value":          func(m *measure) { m.Value = math.NaN() },
		"the bound":          func(m *measure) { m.Want = math.Inf(1) },
		"a round":            func(m *measure) { m.Rounds = []float64{1, math.Inf(-1)} },
		"the figure of node": func(m *measure) { m.Absolute = map[string]float64{"node": math.NaN()} },
		"a round of node":    func(m *measure) { m.Sides = map[string][]float64{"node": {math.NaN()}} },
	} {
		r := sampleReport()
		plant(&r.Goals[0].Measures[0])
		if err := r.writeJSON(io.Discard); err == nil || !strings.Contains(err.Error(), "F1") || !strings.Contains(err.Error(), name) {
			t.Errorf("%s is no number: error %v, want one that names F1 and it", name, err)
		}
	}
	full, broken := io.Pipe()
	full.Close()
	for _, write := range []func(io.Writer) error{sampleReport().writeJSON, sampleReport().writeText} {
		if err := write(broken); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("error %v, want that of writing", err)
		}
	}
}

func TestFigures_Words(t *testing.T) {
	for got, want := range map[string]string{
		latency(999):                  "999 ns",
		latency(1500):                 "1.50 µs",
		latency(90 * time.Second):     "90 s",
		magnitude(0.034, "ms"):        "0.030 ms",
		spell(340 * time.Millisecond): "340ms",
		spell(90 * time.Second):       "1m30s",
		spell(2 * time.Minute):        "2m",
		spell(time.Hour):              "1h",
		bytesText(512 << 20):          "512 MiB",
		bytesText(0):                  "unknown",
		counted(1, "core"):            "1 core",
		(&report{}).shortCommit():     "unknown",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A curve ends where less than one answer lies beyond a percentile, and its last point is the slowest answer.
func TestCurvePoints(t *testing.T) {
	h := hdrhistogram.New(1, int64(time.Minute), 3)
	if got := append(curvePoints(nil), curvePoints(h)...); got != nil {
		t.Errorf("of nothing: %v", got)
	}
	for i := range int64(1000) {
		if err := h.RecordValue((i + 1) * 1000); err != nil {
			t.Fatal(err)
		}
	}
	points, last := map[float64]time.Duration{}, point{Percentile: -1}
	for _, p := range curvePoints(h) {
		if p.Percentile <= last.Percentile || p.Latency < last.Latency {
			t.Errorf("%v comes after %v", p, last)
		}
		points[p.Percentile], last = p.Latency, p
	}
	for percentile, want := range map[float64]time.Duration{
		0: time.Microsecond, 50: 500 * time.Microsecond, 99: 990 * time.Microsecond, 99.9: 999 * time.Microsecond, 100: time.Millisecond, 99.95: 0, 99.99: 0,
	} {
		if got, there := points[percentile]; there != (want > 0) || (got-want).Abs() > want/500 {
			t.Errorf("p%v is %v (%v), want about %v", percentile, got, there, want)
		}
	}
}
