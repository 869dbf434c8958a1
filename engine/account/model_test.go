package account

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
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
