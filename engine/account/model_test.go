package account

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

// model is what quotaModel and loginModel share.
type model struct {
	pick   func(n int) int // below n
	only   string          // the faults that a control looks for; "" = all
	single bool
	start  time.Time
	real   time.Duration // true time since start
	runs   int           // processes that were started
	fault  string        // the first violation
	counts map[string]int
}

func (m *model) fail(format string, args ...any) {
	if m.fault == "" && strings.Contains(format, m.only) {
		m.fault = fmt.Sprintf("at %s: ", m.real) + fmt.Sprintf(format, args...)
	}
}

func (m *model) passOneOf(spans ...time.Duration) { m.real += spans[m.pick(len(spans))] }

// process is one process of a node.
type process struct {
	world  *model
	run    int
	wall   time.Duration // how far its clock is ahead
	began  time.Duration // true time
	origin time.Duration // of its monotonic time
}

func (p *process) start(origin time.Duration) {
	p.world.runs++
	p.run, p.began, p.origin = p.world.runs, p.world.real, origin
}

func (p *process) now() ClockReading {
	return ClockReading{Wall: p.world.start.Add(p.world.real + p.wall), Monotonic: p.origin + p.world.real - p.began}
}

func (p *process) stepClock() {
	steps := []time.Duration{time.Second, 61 * time.Second, time.Hour, 25 * time.Hour, 40 * 24 * time.Hour}
	p.wall += steps[p.world.pick(len(steps))] * time.Duration(1-2*p.world.pick(2))
}

// sequences runs models with several seeds. The first fault fails the test, and so does what was never counted.
func sequences(t *testing.T, stream uint64, count int, live func(pick func(int) int) *model, wanted ...string) {
	t.Helper()
	sum := map[string]int{}
	for seed := range count {
		m := live(rand.New(rand.NewPCG(stream, uint64(seed))).IntN)
		if m.fault != "" {
			t.Fatalf("seed %d: %s", seed, m.fault)
		}
		for what, n := range m.counts {
			sum[what] += n
		}
	}
	t.Logf("%d sequences: %v", count, sum)
	for _, what := range wanted {
		if sum[what] == 0 {
			t.Errorf("nothing was %s", what)
		}
	}
}

// wantCaught wants a model to find a planted bug in one of 2,000 sequences, from a seed on. So many take seconds if the
// bug is not caught.
func wantCaught(t *testing.T, name string, stream, first uint64, live func(pick func(int) int) *model) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		for seed := first; seed < first+2_000; seed++ {
			if m := live(rand.New(rand.NewPCG(stream, seed)).IntN); m.fault != "" {
				t.Logf("caught by sequence %d: %.200s", seed, m.fault)
				return
			}
		}
		t.Error("not caught")
	})
}

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

// sorted returns a state with its own addresses, sorted.
func sorted(state RegistryState) RegistryState {
	state.Addresses = slices.Clone(state.Addresses)
	slices.SortFunc(state.Addresses, func(a, b *AddressState) int { return bytes.Compare(a.Email.digest[:], b.Email.digest[:]) })
	for i, row := range state.Addresses {
		own := *row
		state.Addresses[i] = &own
	}
	return state
}

// codeOf is the code of an *engine.Error, "" for other errors.
func codeOf(err error) engine.Code {
	var refusal *engine.Error
	if !errors.As(err, &refusal) {
		return ""
	}
	return refusal.Code
}
