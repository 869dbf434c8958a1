package account

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

// clusterDay is a cluster without faults.
type clusterDay struct {
	*quotaModel
	asked  int
	before int // records of the log before
}

func newClusterDay() *clusterDay {
	w := newQuotaModel(func(int) int { return 0 }, false, quotaBug{})
	w.policy = defaultPolicy
	return &clusterDay{quotaModel: w, before: len(w.log)}
}

// pass lets time pass in steps of a tenth of a second, which is how long a lease takes to reach all nodes. ask returns
// the nodes that have a request in a step.
func (d *clusterDay) pass(t *testing.T, span time.Duration, ask func(step int) []int) {
	t.Helper()
	for step := range int(span / (100 * time.Millisecond)) {
		d.real += 100 * time.Millisecond
		for _, i := range ask(step) {
			d.asked++
			d.nodes[i].request()
		}
		for _, n := range d.nodes {
			if n.commit(); step%50 == 0 {
				n.returnIdle()
			}
		}
		for _, n := range d.nodes {
			n.deliver(len(d.log))
		}
		if d.fault != "" {
			t.Fatal(d.fault)
		}
	}
}

// An account that uses one node gets its whole quota; one that uses several gets most of it.
func TestL2_AClusterAdmitsWhatItMay(t *testing.T) {
	const minutes = 10
	random := rand.New(rand.NewPCG(9, 0))
	for name, c := range map[string]struct {
		ask     func(step int) []int
		atLeast float64 // of what was asked for, or of the limit
		records float64 // for each request, at most
	}{
		"one node, as fast as it can":        {func(int) []int { return []int{0} }, 0.95, 0.3},
		"one node, once a second":            {func(step int) []int { return []int{0}[:when(step%10 == 0)] }, 0.95, 0.3},
		"one node, bursts":                   {func(step int) []int { return []int{0}[:when(step%600 < 50)] }, 0.95, 0.3},
		"one node, now and then":             {func(step int) []int { return []int{0}[:when(step%300 == 0)] }, 1, 1},
		"two nodes, as fast as they can":     {func(int) []int { return []int{0, 1} }, 0.5, 1.2},
		"three nodes, as fast as they can":   {func(int) []int { return []int{0, 1, 2} }, 0.5, 1.5},
		"two nodes in turn, 40 a minute":     {func(step int) []int { return []int{step / 15 % 2}[:when(step%15 == 0)] }, 0.9, 1.2},
		"three nodes by chance, 40 a minute": {func(step int) []int { return []int{random.IntN(3)}[:when(step%15 == 0)] }, 0.9, 1.2},
		"one node, then another": {func(step int) []int {
			return []int{when(step > 3000)}[:when(step%15 == 0)]
		}, 0.9, 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			d := newClusterDay()
			d.pass(t, minutes*time.Minute, c.ask)
			most, records := min(d.asked, minutes*MinuteLimitDefault), len(d.log)-d.before
			t.Logf("%d asked, %d admitted of %d, %d records, %d void", d.asked, d.counts["admitted"], most, records, d.counts["void"])
			if float64(d.counts["admitted"]) < c.atLeast*float64(most) {
				t.Errorf("%d admitted of %d", d.counts["admitted"], most)
			}
			if float64(records) > c.records*float64(d.counts["admitted"]) {
				t.Errorf("%d records for %d requests", records, d.counts["admitted"])
			}
		})
	}
}

// A caller with enough requests gets the whole day's quota, on any number of nodes.
func TestL1_AClusterAdmitsTheWholeDay(t *testing.T) {
	random := rand.New(rand.NewPCG(10, 0))
	for name, ask := range map[string]func(step int) []int{
		"one node":    func(int) []int { return []int{0} },
		"two nodes":   func(int) []int { return []int{0, 1} },
		"three nodes": func(step int) []int { return []int{random.IntN(3)}[:when(step%7 == 0)] },
	} {
		t.Run(name, func(t *testing.T) {
			d := newClusterDay()
			d.pass(t, 30*time.Minute, ask)
			if d.counts["admitted"] != DayLimitDefault {
				t.Errorf("%d admitted", d.counts["admitted"])
			}
			if result, _ := d.nodes[2].account.Admit(testKey, d.nodes[2].now(), d.policy); result.DenyCode != engine.CodeQuotaExceeded {
				t.Errorf("another node says %+v", result)
			}
		})
	}
}
