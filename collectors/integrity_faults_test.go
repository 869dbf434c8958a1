//go:build faults

package collectors_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/tasard/tasard/engine"
)

// TestFaultsD1_CorruptedDocuments is TestD1_CorruptedDocuments whole, in markets that nobody has seen before.
func TestFaultsD1_CorruptedDocuments(t *testing.T) {
	first := rand.Uint64() //nolint:forbidigo // printed below
	t.Logf("seeds %d to %d", first, first+corruptMarkets-1)
	var mu sync.Mutex
	var documents, failed, held, served, wrong int
	operatorsFired := map[string]int{}
	t.Run("markets", func(t *testing.T) {
		for seed := first; seed != first+corruptMarkets; seed++ {
			t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
				t.Parallel()
				tally := newTown(t, seed, engine.DefaultRules()).spoil(corruptDocuments/corruptMarkets, seed)
				for _, problem := range tally.wrong {
					t.Error(problem)
				}
				mu.Lock()
				defer mu.Unlock()
				documents += tally.documents
				failed += sum(tally.failures)
				held += sum(tally.held)
				served += tally.served
				wrong += len(tally.wrong)
				for name, count := range tally.operators {
					operatorsFired[name] += count
				}
			})
		}
	})
	t.Logf("FIGURE %d spoilt documents by %d operators: %d could not be read, %d observations held, %d served as published, %d wrong values served",
		documents, len(operatorsFired), failed, held, served, wrong)
	if documents < corruptDocuments {
		t.Errorf("only %d documents were spoilt", documents)
	}
	for _, operator := range operators() {
		if operatorsFired[operator.name] == 0 {
			t.Errorf("%s never fired", operator.name)
		}
	}
}

// TestFaultsD1_Control: an engine without limits serves wrong values of the same kind, and that is counted.
func TestFaultsD1_Control(t *testing.T) {
	rules := engine.DefaultRules()
	rules.JumpPermille, rules.MedianPermille = 1_000_000, 1_000_000
	tally := newTown(t, 1, rules).spoil(corruptSample/2, 1)
	t.Logf("FIGURE an engine without limits: %d spoilt documents, %d wrong values served", tally.documents, len(tally.wrong))
	if len(tally.wrong) == 0 {
		t.Error("no wrong value is served: the test is blind")
	}
}
