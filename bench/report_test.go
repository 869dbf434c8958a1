package main

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

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
