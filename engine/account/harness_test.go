package account

import (
	"errors"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

// sweepAddresses returns whole when SWEEP=whole asks for complete sweeps, as make check does, and sample otherwise.
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

// get reads an instant.
func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

// noon is an ordinary Wednesday in Santo Domingo.
var noon = at("2026-06-17T16:00:00Z")

// idOf is the id of an address that needs no check.
func idOf(address string) EmailID { return Email{address}.ID() }

// codeOf is the code of an error of the rules, "" of any other and of none.
func codeOf(err error) engine.Code {
	var refusal *engine.Error
	if !errors.As(err, &refusal) {
		return ""
	}
	return refusal.Code
}

// fuzzChoices lets a model live by the bytes of a fuzz input: each picks something, and 0 is picked when they are used up.
func fuzzChoices(f *testing.F, live func(pick func(int) int, alone bool, steps int) string) {
	random := newSeededReader(2)
	for size := range 12 {
		data := make([]byte, 100*size)
		_, _ = random.Read(data)
		f.Add(size%2 == 0, data)
	}
	f.Fuzz(func(t *testing.T, alone bool, data []byte) {
		rest := data
		pick := func(n int) int {
			if len(rest) == 0 {
				return 0
			}
			first := rest[0]
			rest = rest[1:]
			return int(first) % n
		}
		if fault := live(pick, alone, min(len(data), 1000)); fault != "" {
			t.Error(fault)
		}
	})
}

// wantCaught wants a planted bug found by a model, in one of many sequences of a stream from the first seed on.
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
