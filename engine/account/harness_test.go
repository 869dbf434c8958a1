package account

import (
	"errors"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

// sweep returns whole when SWEEP=whole, as in make check, and sample otherwise.
func sweep(sample, whole int) int {
	if os.Getenv("SWEEP") == "whole" {
		return whole
	}
	return sample
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// at parses an instant.
func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

// noon is an ordinary Wednesday in Santo Domingo.
var noon = at("2026-06-17T16:00:00Z")

// idOf is the id of an address, without checks.
func idOf(address string) EmailID { return Email{address}.ID() }

// codeOf is the code of an *engine.Error, "" for other errors.
func codeOf(err error) engine.Code {
	var refusal *engine.Error
	if !errors.As(err, &refusal) {
		return ""
	}
	return refusal.Code
}

// fuzzChoices runs a model with choices from a fuzz input: each byte is one choice, 0 after the last.
func fuzzChoices(f *testing.F, live func(pick func(int) int, single bool, steps int) string) {
	random := newSeededReader(2)
	for size := range 12 {
		data := make([]byte, 100*size)
		_, _ = random.Read(data)
		f.Add(size%2 == 0, data)
	}
	f.Fuzz(func(t *testing.T, single bool, data []byte) {
		rest := data
		pick := func(n int) int {
			if len(rest) == 0 {
				return 0
			}
			first := rest[0]
			rest = rest[1:]
			return int(first) % n
		}
		if fault := live(pick, single, min(len(data), 1000)); fault != "" {
			t.Error(fault)
		}
	})
}

// wantCaught wants a model to find a planted bug in one of many sequences, from a seed on.
func wantCaught(t *testing.T, name string, stream, first uint64, live func(pick func(int) int) string) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		for seed := first; seed < 60_000; seed++ {
			if fault := live(rand.New(rand.NewPCG(stream, seed)).IntN); fault != "" {
				t.Logf("caught by sequence %d: %.200s", seed, fault)
				return
			}
		}
		t.Error("not caught")
	})
}
