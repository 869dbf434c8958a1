//go:build faults

package collectors

import (
	"math/rand/v2"
	"testing"
)

// TestFaultsD1_CorruptedDocuments is TestD1_CorruptedDocuments whole, in markets of other seeds each time.
func TestFaultsD1_CorruptedDocuments(t *testing.T) {
	first := rand.Uint64() //nolint:forbidigo // printed below
	t.Logf("seeds %d to %d", first, first+corruptMarkets-1)
	all := checkCorrupted(t, first, corruptMarkets, corruptDocuments)
	t.Logf("FIGURE %d spoilt documents by %d operators: %d could not be read, %d observations held, %d served as published, %d wrong values served",
		all.documents, len(all.corruptions), sum(all.failures), sum(all.held), all.served, len(all.wrong))
}

// TestFaultsD5_CrashAroundEachSlot kills a node around each of the three refreshes of a day, 300 times each.
func TestFaultsD5_CrashAroundEachSlot(t *testing.T) {
	seed := rand.Uint64() //nolint:forbidigo // printed below
	t.Logf("seed %d", seed)
	const rounds = 300
	cut := 0
	for _, hour := range []int{8, 12, 17} {
		cut += checkCrashes(t, seed, santoDomingo(2026, 9, 14, hour, 0, 0), rounds)
	}
	t.Logf("FIGURE 3 slots, %d rounds each: %d lives cut short within an append, each slot published exactly once: %v", rounds, cut, !t.Failed())
}
