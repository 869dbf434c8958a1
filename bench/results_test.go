//go:build linux

package main

import (
	"bytes"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/bench/load"

	"github.com/HdrHistogram/hdrhistogram-go"
)

func sampleGoals() []goal {
	f1, f4 := goal{ID: "F1", Date: "2026-11-21", Machine: "AMD EPYC 7B13, 2 cores"}, goal{ID: "F4", Date: "2026-11-21", Machine: "AMD EPYC 7B13, 2 cores"}
	sides := map[string][]float64{"node": {27345, 27345}, "bare": {29512}}
	f1.require(measurement{Name: "requests/s", Unit: "×", Rounds: []float64{0.93, 0.94, 0.95, 0.2}, Sides: sides, SidesUnit: "/s"}, "≥", 0.9)
	f1.require(measurement{Name: "CPU time of a request", Unit: "×", Rounds: []float64{1.1204}, Sides: map[string][]float64{"node": {37120}}, SidesUnit: "ns"}, "≤", 1.12)
	f4.require(measurement{Name: "objects", Rounds: []float64{0}}, "≤", 0)
	f4.add(measurement{Name: "bytes", Unit: "B", Rounds: []float64{1234567.8, -1500}})
	return []goal{f1, f4}
}

// TestGoal_Text checks figures and verdicts.
func TestGoal_Text(t *testing.T) {
	goals := sampleGoals()
	got := strings.Join(strings.Fields(goals[0].text()+goals[1].text()), " ")
	const want = "met requests/s 0.935× ≥ 0.900× (0.200–0.950, bare 29512/s, node 27345/s) " +
		"SHORT CPU time of a request 1.1204× ≤ 1.12× (1.12–1.12, node 37.1µs) met objects 0 ≤ 0 (0–0) bytes 616534B (-1500–1234568)"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := (&runner{goals: goals}).summary(); got != "\n3 bounds; short: F1\n" {
		t.Error(got)
	}
	if got := (&runner{goals: goals[1:]}).summary(); got != "\n1 bounds; short: none\n" {
		t.Error(got)
	}
	goals[0].Measures[0].Rounds[0] = math.NaN()
	if err := writeJSON(filepath.Join(t.TempDir(), "figures.json"), goals); err == nil {
		t.Error("a round that is no number is written")
	}
	if !strings.Contains(thisMachine(), "cores") {
		t.Error(thisMachine())
	}
}

// TestMeasure_Met checks bounds; NaN is within none.
func TestMeasure_Met(t *testing.T) {
	for _, tt := range []struct {
		value, want float64
		bound       string
		met         bool
	}{
		{0.9, 0.9, "≥", true}, {0.8999, 0.9, "≥", false}, {1.12, 1.12, "≤", true}, {1.13, 1.12, "≤", false}, {0, 0, "≤", true}, {7, 0, "", true},
		{math.NaN(), 1, "≤", false},
	} {
		m := measurement{Value: tt.value, Want: tt.want, Bound: tt.bound, Rounds: []float64{tt.value}}
		if m.met() != tt.met {
			t.Errorf("%+v: met %v", tt, m.met())
		}
	}
}

// TestMeasure_Differs: a ratio shows a difference if the interval of its median does not contain 1. Otherwise it meets
// a bound if the whole interval does.
func TestMeasure_Differs(t *testing.T) {
	sides := map[string][]float64{"node": {1}, "bare": {1}}
	for _, tt := range []struct {
		rounds []float64
		bound  string
		want   float64
		shown  string
		met    bool
	}{
		{[]float64{0.90, 0.95, 1.00, 1.05}, "≥", 1, "no difference shown", true},
		{[]float64{1.00, 1.02, 1.10, 1.20}, "≥", 1.2, "no difference shown", false},
		{[]float64{0.80, 0.80, 0.82, 0.82}, "≥", 1, "0.810×", false},
		{[]float64{1.10, 1.30, 1.30, 2.00}, "≤", 1.2, "1.30×", false},
		{[]float64{0.90, 1.00, 1.60, 2.00}, "≤", 1.2, "no difference shown", false},
		{[]float64{0.90, 0.95, 1.10, 1.15}, "≤", 1.2, "no difference shown", true},
		{[]float64{0.01, 0.80, 0.80, 0.80, 0.82, 0.82, 0.82, 0.82, 9}, "≥", 0.9, "0.820×", false}, // one round on each side says nothing
		{[]float64{0.10, 0.95, 1.00, 1.00, 1.05, 1.05, 1.10, 1.15, 9}, "≤", 1.2, "no difference shown", true},
		{[]float64{0.10, 0.95, 1.00, 1.00, 1.05, 1.05, 1.10, 1.25, 9}, "≤", 1.2, "no difference shown", false},
	} {
		g := goal{}
		g.require(measurement{Unit: "×", Rounds: tt.rounds, Sides: sides}, tt.bound, tt.want)
		if m := &g.Measures[0]; m.formatResult() != tt.shown || m.met() != tt.met {
			t.Errorf("%v: %s, met %v; want %s, %v", tt.rounds, m.formatResult(), m.met(), tt.shown, tt.met)
		}
	}
}

// TestTables accepts figures twice: the later ones of a goal replace the earlier ones, and documents show them.
func TestTables(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{".ci", "docs"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	first, later := sampleGoals(), sampleGoals()[1:]
	later[0].Date = "2026-11-22"
	if err := acceptFigures(root, first); err == nil {
		t.Error("a document without markers is rewritten")
	}
	for name := range tableFiles() {
		writeFile(t, filepath.Join(root, name), []byte("before\n"+tableBegin+"old\n"+tableEnd+"after\n"))
	}
	if err := errors.Join(acceptFigures(root, first), acceptFigures(root, later)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "performance.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"before\n" + tableBegin + "| | Measured", "| F1 | requests/s | 0.935× | ≥ 0.900×, met | bare 29512/s, node 27345/s |\n",
		"| F4 | objects | 0 | ≤ 0, met |  |\n", "\nMeasured on 2026-11-21 on AMD EPYC", "; on 2026-11-22 on AMD", tableEnd + "after\n",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("want %q in\n%s", want, text)
		}
	}
	if text, err = os.ReadFile(filepath.Join(root, "README.md")); err != nil || strings.Contains(string(text), "| F4 |") {
		t.Errorf("README.md shows a goal that it should not: %v\n%s", err, text)
	}
}

// TestTables_Documents checks that the documents show the accepted figures.
func TestTables_Documents(t *testing.T) {
	accepted, err := readFigures("..")
	if err != nil || len(accepted) == 0 {
		t.Fatalf("%d accepted goals, %v", len(accepted), err)
	}
	for name, goals := range tableFiles() {
		text, err := os.ReadFile(filepath.Join("..", name))
		if want := tableBegin + table(accepted, goals) + tableEnd; err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s does not show the figures of %s (%v); make bench writes them:\n%s", name, figuresFile, err, want)
		}
	}
}

func TestBenchmarkTimes(t *testing.T) {
	got := benchmarkTimes("goos: linux\nBenchmarkCores/both    \t 100\t 2000 ns/op\t 1 cpu-ns/op\nBenchmarkCores/both-2 \t 100\t 1000.5 ns/op\nPASS\n")
	if len(got) != 2 || got["both"] != 2000 || got["both-2"] != 1000.5 {
		t.Errorf("%v", got)
	}
}

func sampleOf(answers uint64, cpu, latency time.Duration) sample {
	h := hdrhistogram.New(1, int64(time.Minute), 3)
	_ = h.RecordValues(int64(latency), int64(answers))
	return sample{Results: load.Results{Responses: answers, Elapsed: time.Second, Latency: h}, cpu: cpu}
}

// TestRatio_OfRounds checks that a figure is the median of the rounds' ratios, not the ratio of the medians: a slow
// moment of the machine affects both sides of a round.
func TestRatio_OfRounds(t *testing.T) {
	pairs := []pair{
		{sampleOf(90, 900, 9), sampleOf(100, 800, 6)},
		{sampleOf(9, 90, 90), sampleOf(10, 80, 60)}, // the machine was busy
		{sampleOf(180, 3600, 5), sampleOf(100, 1000, 5)},
		{sampleOf(60, 600, 9), sampleOf(100, 1000, 6)},
	}
	for _, tt := range []struct {
		of                 func(*sample) float64
		rounds             []float64
		median, node, bare float64
	}{
		{requestsPerSecond, []float64{0.9, 0.9, 1.8, 0.6}, 0.9, 75, 100}, {cpuPerRequest, []float64{1.25, 1.25, 2, 1}, 1.25, 10, 9}, {p99, []float64{1.5, 1.5, 1, 1.5}, 1.5, 9, 6},
	} {
		m := ratioOf("x", "/s", pairs, [2]string{"node", "bare"}, tt.of)
		if !slices.Equal(m.Rounds, tt.rounds) || median(m.Rounds) != tt.median || median(m.Sides["node"]) != tt.node || median(m.Sides["bare"]) != tt.bare {
			t.Errorf("%+v; want %+v", m, tt)
		}
	}
	if got := median([]float64{5, 1, 3}); got != 3 {
		t.Errorf("the median of 5, 1 and 3 is %v", got)
	}
}

// TestRetry: a round that stalled is measured again, but a goal has a limit of such rounds; any other error ends the
// measurement after a few attempts.
func TestRetry(t *testing.T) {
	failure := errors.New("refused")
	for _, tt := range []struct {
		errs     []error // of the attempts; the last one repeats
		stalls   int     // before
		attempts int
		want     error
	}{
		{[]error{nil}, 0, 1, nil}, {[]error{errStalled, errStalled, nil}, 0, 3, nil}, {[]error{errStalled}, 0, measureAttempts, nil},
		{[]error{errStalled}, 20, 1, nil}, {[]error{failure}, 0, measureAttempts, failure}, {[]error{failure, errStalled, nil}, 0, 3, nil},
	} {
		r, attempts := &runner{options: runOptions{Rounds: 10}, stalls: tt.stalls}, 0
		err := r.retry(t.Context(), func() error {
			attempts++
			return tt.errs[min(attempts, len(tt.errs))-1]
		})
		if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) || attempts != tt.attempts {
			t.Errorf("%v after %d stalls: %d attempts, %v", tt.errs, tt.stalls, attempts, err)
		}
	}
}

func TestSettings(t *testing.T) {
	s, err := readSettings(strings.Fields("-tasard ./tasard -goals f12,F1 -quick -rounds 9 -measure 2s"), &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	if o := s.options; o.Rounds != 8 || o.Measure != 2*time.Second || o.Connections != 64 || o.Accounts != 128 {
		t.Errorf("%+v", s)
	}
	if len(s.goals) != 2 || s.goals[0].goal != "F1" || s.goals[1].goal != "F12" {
		t.Errorf("%v: want F1, then F12", s.goals)
	}
	if all, err := selectGoals(""); err != nil || len(all) != 18 {
		t.Errorf("%d goals, %v: want 18", len(all), err)
	}
	if s, err = readSettings(strings.Fields("-against http://node/"), &bytes.Buffer{}); err != nil || s.target != "node:80" {
		t.Errorf("%+v, %v", s, err)
	}
	for line, want := range map[string]string{
		"-tasard x -goals F16":     "F16",
		"-goals F1":                "-tasard",
		"-tasard x -docs . -quick": "-docs",
		"-rounds 0":                "-rounds 0",
		"-accounts 200000":         "-accounts 200000",
		"-connections 0":           "-connections 0",
		"-rate -1":                 "-rate -1",
		"-rate NaN":                "-rate NaN",
		"-measure 0s":              "-measure 0s",
		"-mix everything":          "everything",
		"F1":                       `"F1"`,
		"-against ftp://a":         "http://host:port",
		"-against http://a/v1":     "http://host:port",
		"-against http://u:p@a:80": "http://host:port",
		"-speed 3":                 "-speed",
	} {
		if _, err := readSettings(strings.Fields(line), &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want something about %s", line, err, want)
		}
	}
	var out bytes.Buffer
	if _, err := readSettings([]string{"-help"}, &out); !errors.Is(err, flag.ErrHelp) || !strings.Contains(out.String(), "bench -tasard ./tasard") {
		t.Errorf("-help: %v, %s", err, out.String())
	}
}

// TestCache_Documented checks that F15 measures the settings of nginx that the documents show.
func TestCache_Documented(t *testing.T) {
	page, err := os.ReadFile("../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(nginxProxy) {
		if !strings.Contains(string(page), strings.TrimSpace(line)+"\n") {
			t.Errorf("docs/performance.md does not have %q", line)
		}
	}
}
