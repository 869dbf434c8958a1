//go:build faults

package faults

import (
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/tasard/tasard/httpapi/admin"
)

// TestKill_WhatIsLearnt kills a node that collects every second, at random times. A run that the node has reported must
// never be forgotten.
func TestKill_WhatIsLearnt(t *testing.T) {
	if rate, runs, before := learntUntilLost(t, "", 8); rate != "" {
		t.Errorf("%s: %d runs are known after a kill, %d were reported before", rate, runs, before)
	}
	mutant := buildMutant(t, "forgets", "collectors/collector_run.go", "current[i].Baseline = learnt.Encode()", "_ = learnt")
	if rate, _, _ := learntUntilLost(t, mutant, 3); rate == "" {
		t.Error("a node that stores nothing of it is not noticed")
	}
}

// learntUntilLost starts and kills a node some times. If a rate has fewer runs after a start than were reported before
// the kill, it returns the rate.
func learntUntilLost(t *testing.T, program string, kills int) (rate string, runs, before int) {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	random := rand.New(rand.NewPCG(newSeed(t), 0))
	reported := map[string]int{}
	for range kills {
		n := launch(t, command{program: program, args: []string{"demo", "--step", "1s", "--listen", "127.0.0.1:0", "--data", data}})
		n.Await("Ctrl-C stops it")
		first := reportedRuns(t, n)
		for rate, before := range reported {
			if runs := first[rate]; runs < before {
				return rate, runs, before
			}
		}
		for end := time.Now().Add(2*time.Second + time.Duration(random.IntN(1500))*time.Millisecond); time.Now().Before(end); {
			reported = reportedRuns(t, n)
			<-time.NewTimer(50 * time.Millisecond).C
		}
		n.kill()
	}
	if len(reported) < 50 {
		t.Errorf("only %d rates were reported", len(reported))
	}
	return "", 0, 0
}

// reportedRuns returns how many runs each source has had with each rate.
func reportedRuns(t *testing.T, n *node) map[string]int {
	t.Helper()
	client := n.admin()
	defer client.close()
	var sources admin.Sources
	got, err := client.do("GET", "http://node/sources", "", nil)
	if err != nil || !got.good() || got.decode(&sources) != nil {
		t.Fatal(got.failure("list sources", err))
	}
	runs := map[string]int{}
	for _, s := range sources.Sources {
		if s.Health == nil {
			continue
		}
		for _, quote := range s.Health.Quotes {
			runs[s.ID+" "+quote.Rate] = max(quote.Buy.Runs, quote.Sell.Runs)
		}
	}
	return runs
}
