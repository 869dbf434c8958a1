package main

import (
	"bytes"
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
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// sampleReport is a report with one of everything: ratios, counts and times, met, short and without bound, curves, skipped ones.
func sampleReport() *report {
	return &report{
		Started: time.Date(2026, time.November, 21, 18, 4, 9, 0, time.UTC),
		Took:    11*time.Minute + 42*time.Second,
		Commit:  "4f2a9c1d7b3e5f60718293a4b5c6d7e8f9012345",
		Changed: true,
		Machine: machine{CPU: "AMD EPYC 7B13", Cores: 2, Memory: 8_324_030_464, Kernel: "6.1.0-44-cloud-amd64", Go: "go1.26.8"},
		Options: runOptions{Rounds: 7, Measure: 4 * time.Second, Warmup: time.Second, Connections: 64, Accounts: 1000, Seed: 20261121},
		Goals:   sampleGoals(),
		Curves: []curve{
			{Goal: "F5", Name: "node at 12,000/s", Points: curvePoints(sampleLatencies(1.25))},
			{Goal: "F5", Name: "bare at 12,000/s", Points: curvePoints(sampleLatencies(1))},
			{Goal: "F12", Name: "quiet", Points: curvePoints(sampleLatencies(1.1))},
			{Goal: "F12", Name: "while a refresh is taken in", Points: curvePoints(sampleLatencies(1.9))},
		},
		Skipped: []skip{
			{Name: "F6, nginx", Why: "nginx is not installed: apt-get install nginx-light"},
			{Name: "F7, PostgreSQL <9.4 & \"older\"", Why: "the server did not start within 10 s, see its log"},
		},
	}
}

// sampleLatencies is a made-up distribution with a long tail; no chance in it.
func sampleLatencies(factor float64) *hdrhistogram.Histogram {
	h := hdrhistogram.New(1000, int64(time.Minute), 3)
	const answers = 100_000
	for i := range answers {
		share := (float64(i) + 0.5) / answers
		ns := factor * (70_000 + 60_000*share + 45_000*math.Pow(-math.Log(1-share), 1.6))
		if err := h.RecordValue(int64(ns)); err != nil {
			panic(err)
		}
	}
	return h
}

func sampleGoals() []goal {
	around := func(v float64) []float64 {
		return []float64{v, v * 1.012, v * 0.985, v * 1.004, v * 0.991, v * 1.031, v * 0.997}
	}
	requests := func(node, bare float64) map[string]float64 { return map[string]float64{"node": node, "bare": bare} }
	return []goal{
		{ID: "F1", Title: "The best ten rates, with a key", Measures: []measure{
			{Name: "requests/s, node to bare", Unit: "×", Value: 0.9312, Rounds: around(0.9312), Want: 0.9, AtLeast: true,
				Absolute: requests(27345, 29512), AbsoluteUnit: "/s",
				Sides: map[string][]float64{"node": around(27345), "bare": around(29512)}},
			{Name: "CPU per request, node to bare", Unit: "×", Value: 1.1504, Rounds: around(1.1504), Want: 1.12,
				Absolute: requests(37120, 32200), AbsoluteUnit: "ns", Limit: "half of the difference is the look-up of the key, a third the two quota windows"},
		}},
		{ID: "F2", Title: "The full page of about 45 rates", Measures: []measure{
			{Name: "requests/s, node to bare, plain", Unit: "×", Value: 0.97, Rounds: around(0.97), Want: 0.9, AtLeast: true},
			{Name: "requests/s, node to bare, gzip", Unit: "×", Value: 0.899, Rounds: around(0.899), Want: 0.9, AtLeast: true,
				Limit: "the compressed page is copied once more than the plain one"},
		}},
		{ID: "F4", Title: "Allocations of a warm request", Measures: []measure{
			{Name: "allocations per request on the path of F1", Unit: "allocations", Value: 0},
			{Name: "bytes per request", Unit: "B", Value: 14.25, Rounds: []float64{14, 14.5, 14.25}, Free: true},
		}},
		{ID: "F5", Title: "Latency at half of what the bare server can do", Measures: []measure{
			{Name: "p99, node to bare", Unit: "×", Value: 1.25, Rounds: around(1.25), Want: 1.5, Absolute: requests(360_000, 288_000), AbsoluteUnit: "ns"},
		}},
		{ID: "F6", Title: "Beside nginx with the same bytes as a file"},
		{ID: "F7", Title: "Beside net/http and PostgreSQL with the same question", Measures: []measure{
			{Name: "requests/s, node to PostgreSQL", Unit: "×", Value: 21.7, Rounds: around(21.7), Want: 10, AtLeast: true,
				Absolute: map[string]float64{"node": 27000, "postgres": 1240}, AbsoluteUnit: "/s"},
		}},
		{ID: "F8", Title: "From the start to the first answer", Measures: []measure{
			{Name: "1,000,000 records in the log", Unit: "ms", Value: 812, Rounds: []float64{812, 840, 790}, Want: 1000},
			{Name: "the same, from a snapshot", Unit: "ms", Value: 96.4, Rounds: []float64{96.4, 99, 91}, Want: 300},
		}},
		{ID: "F9", Title: "Memory for a million accounts that were active today", Measures: []measure{
			{Name: "bytes an account", Unit: "B", Value: 913, Want: 1024},
		}},
		{ID: "F10", Title: "Observations taken in, validated, durable", Measures: []measure{
			{Name: "observations a second, in batches", Unit: "/s", Value: 183_400, Rounds: around(183_400), Want: 50_000, AtLeast: true},
		}},
		{ID: "F12", Title: "Reads while a refresh of every source is taken in", Measures: []measure{
			{Name: "p99, during the refresh to quiet", Unit: "×", Value: 1.73, Rounds: around(1.73), Want: 1.5,
				Limit: "one core does both, and a batch holds it for 2 ms"},
		}},
	}
}

// forms are the ways to write a report.
func forms() map[string]func(*report, io.Writer) error {
	return map[string]func(*report, io.Writer) error{
		"text": (*report).writeText, "JSON": (*report).writeJSON, "benchstat": (*report).writeBenchstat, "HTML": (*report).writeHTML,
	}
}

func written(t testing.TB, write func(io.Writer) error) string {
	t.Helper()
	var out bytes.Buffer
	if err := write(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestReport_Golden(t *testing.T) {
	r := sampleReport()
	for name, write := range map[string]func(io.Writer) error{
		"report.txt": r.writeText, "report.html": r.writeHTML, "report.json": r.writeJSON,
	} {
		t.Run(name, func(t *testing.T) {
			got := written(t, write)
			path := filepath.Join("testdata", name)
			if *update {
				if err := os.MkdirAll("testdata", 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatalf("%v; make golden writes it", err)
			}
			if got != string(want) {
				t.Errorf("differs from %s, first at %q; make golden rewrites it", path, firstDifference(got, string(want)))
			}
		})
	}
}

// firstDifference is the first line of got that want has not at the same place.
func firstDifference(got, want string) string {
	wanted := strings.Split(want, "\n")
	for i, line := range strings.Split(got, "\n") {
		if i >= len(wanted) || line != wanted[i] {
			return line
		}
	}
	return "(the end)"
}

func TestReport_RoundTrip(t *testing.T) {
	for name, r := range map[string]*report{"sample": sampleReport(), "empty": {}} {
		again, err := readReport(strings.NewReader(written(t, r.writeJSON)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !reflect.DeepEqual(again, r) {
			t.Errorf("%s: read %+v, want %+v", name, again, r)
		}
	}
}

func TestReport_RoundTripOfAny(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyReport(t)
		var out bytes.Buffer
		if err := r.writeJSON(&out); err != nil {
			t.Fatal(err)
		}
		again, err := readReport(&out)
		if err != nil {
			t.Fatal(err)
		}
		var first, second bytes.Buffer
		if err := errors.Join(r.writeJSON(&first), again.writeJSON(&second)); err != nil {
			t.Fatal(err)
		}
		if first.String() != second.String() {
			t.Fatalf("written again it is %s, want %s", second.String(), first.String())
		}
	})
}

func TestReport_ReadRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"nothing":             {"", "EOF"},
		"no JSON":             {"BenchmarkF1 1 2 ratio", "invalid character"},
		"an unknown field":    {`{"commit":"x","colour":"red"}`, `unknown field "colour"`},
		"one further in":      {`{"goals":[{"id":"F1","measures":[{"name":"n","wants":1}]}]}`, `unknown field "wants"`},
		"another type":        {`{"goals":"F1"}`, "cannot unmarshal"},
		"a cut file":          {`{"goals":[`, "unexpected EOF"},
		"a second report":     {`{} {}`, "one report in a file"},
		"something behind it": {`{} x`, "one report in a file"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := readReport(strings.NewReader(tt.text))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("read %+v, error %v; want an error with %q", r, err, tt.want)
			}
		})
	}
}

func TestReport_NoNumberIsRefusedByName(t *testing.T) {
	for name, plant := range map[string]func(*measure){
		"the value":          func(m *measure) { m.Value = math.NaN() },
		"the bound":          func(m *measure) { m.Want = math.Inf(1) },
		"a round":            func(m *measure) { m.Rounds = []float64{1, math.Inf(-1)} },
		"the figure of node": func(m *measure) { m.Absolute = map[string]float64{"node": math.NaN()} },
		"a round of node":    func(m *measure) { m.Sides = map[string][]float64{"node": {math.NaN()}} },
	} {
		r := sampleReport()
		plant(&r.Goals[0].Measures[0])
		for form, write := range forms() {
			err := write(r, io.Discard)
			if form == "text" { // it shows even that: somebody waits at the terminal
				continue
			}
			if err == nil || !strings.Contains(err.Error(), "F1") || !strings.Contains(err.Error(), name) {
				t.Errorf("%s with %s that is no number: error %v, want one that names F1 and it", form, name, err)
			}
		}
	}
}

// deafWriter fails like a full disk.
type deafWriter struct{}

var errFull = errors.New("no space left")

func (deafWriter) Write([]byte) (int, error) { return 0, errFull }

func TestReport_WriteErrorsAreTold(t *testing.T) {
	for form, write := range forms() {
		if err := write(sampleReport(), deafWriter{}); !errors.Is(err, errFull) {
			t.Errorf("%s: error %v, want %v", form, err, errFull)
		}
	}
}

// anyReport makes reports of every shape, with texts that try to break out of their form.
func anyReport(t *rapid.T) *report {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "F1", "</svg><script>alert(1)</script>", "\x1b[2J", "a\nb", "\"'`", "<!--"}),
		rapid.StringMatching(`[a-z /-]{0,150}`))
	figure := rapid.OneOf(rapid.Float64(), rapid.Float64Range(0, 2), rapid.SampledFrom([]float64{0, 1, -1, math.MaxFloat64, 5e-324, 0.9}))
	sides := rapid.MapOfN(text, figure, 0, 3)
	rounds := rapid.SliceOfN(figure, 0, 8)
	measures := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) measure {
		return measure{
			Name: text.Draw(t, "name"), Unit: rapid.OneOf(text, rapid.SampledFrom([]string{"×", "/s", "ms", "B"})).Draw(t, "unit"),
			Value: figure.Draw(t, "value"), Rounds: rounds.Draw(t, "rounds"), Want: figure.Draw(t, "want"),
			AtLeast: rapid.Bool().Draw(t, "at least"), Free: rapid.Bool().Draw(t, "free"), Absolute: sides.Draw(t, "absolute"),
			AbsoluteUnit: rapid.SampledFrom([]string{"", "ns", "/s"}).Draw(t, "absolute unit"), Limit: text.Draw(t, "limit"),
			Sides: rapid.MapOfN(text, rounds, 0, 2).Draw(t, "sides"),
		}
	}), 0, 4)
	points := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) point {
		return point{
			Percentile: rapid.OneOf(figure, rapid.Float64Range(0, 100), rapid.SampledFrom(curvePercentiles())).Draw(t, "percentile"),
			Latency:    time.Duration(rapid.Int64().Draw(t, "latency")),
		}
	}), 0, 12)
	return &report{
		Started: time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "started"), 0).UTC(), Took: time.Duration(rapid.Int64().Draw(t, "took")),
		Commit: text.Draw(t, "commit"), Changed: rapid.Bool().Draw(t, "changed"),
		Machine: machine{CPU: text.Draw(t, "cpu"), Cores: rapid.Int().Draw(t, "cores"), Memory: rapid.Int64().Draw(t, "memory"), Kernel: text.Draw(t, "kernel")},
		Options: runOptions{Rounds: rapid.Int().Draw(t, "rounds"), Seed: rapid.Uint64().Draw(t, "seed")},
		Goals: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) goal {
			return goal{ID: text.Draw(t, "id"), Title: text.Draw(t, "title"), Measures: measures.Draw(t, "measures")}
		}), 0, 3).Draw(t, "goals"),
		Curves: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) curve {
			return curve{Goal: text.Draw(t, "goal"), Name: text.Draw(t, "name"), Points: points.Draw(t, "points")}
		}), 0, 8).Draw(t, "curves"),
		Skipped: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) skip {
			return skip{Name: text.Draw(t, "name"), Why: text.Draw(t, "why")}
		}), 0, 2).Draw(t, "skipped"),
	}
}

// FuzzReadReport: a file that is read can be shown in every form.
func FuzzReadReport(f *testing.F) {
	small := sampleReport() // whole it would be minimized for minutes
	small.Goals, small.Curves, small.Skipped = small.Goals[2:3], small.Curves[:1], small.Skipped[:1]
	small.Curves[0].Points = small.Curves[0].Points[:2]
	f.Add([]byte(written(f, small.writeJSON)))
	f.Add([]byte(`{"goals":[{"id":"","measures":[{"value":-1e308,"want":1e308,"rounds":[0,1e-320]}]}]}`))
	f.Add([]byte(`{"curves":[{"goal":"F5","points":[{"percentile":-7,"nanoseconds":-1},{"percentile":99.9999999999999,"nanoseconds":1}]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := readReport(bytes.NewReader(text))
		if err != nil {
			return
		}
		for form, write := range forms() {
			if err := write(r, io.Discard); err != nil {
				t.Errorf("%s of a report that could be read: %v", form, err)
			}
		}
	})
}
