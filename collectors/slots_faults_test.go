//go:build faults

package collectors

import (
	"math/rand/v2"
	"testing"
)

// TestFaultsD5_CrashAroundEachSlot kills a node around each of the three refreshes of a day, a thousand times each.
func TestFaultsD5_CrashAroundEachSlot(t *testing.T) {
	seed := rand.Uint64() //nolint:forbidigo // printed below
	t.Logf("seed %d", seed)
	const rounds = 1000
	lives, cut, doubles := 0, 0, 0
	for _, hour := range []int{8, 12, 17} {
		c := &crashes{random: rand.New(rand.NewPCG(seed, uint64(hour))), slot: santoDomingo(2026, 9, 14, hour, 0, 0)}
		for round := range rounds {
			doubled, missing := c.run(t)
			if doubled != nil || missing > 0 {
				t.Errorf("%d:00, round %d of seed %d: doubled %v, missing %d", hour, round, seed, doubled, missing)
				doubles++
			}
		}
		lives, cut = lives+c.lives, cut+c.cut
	}
	t.Logf("FIGURE 3 slots, %d rounds each: %d lives, %d cut short within an intake, %d slots not published exactly once", rounds, lives, cut, doubles)
	if cut == 0 {
		t.Error("no life ended within an intake")
	}
}

// TestFaultsD5_Control: a node that does not keep what was done publishes twice.
func TestFaultsD5_Control(t *testing.T) {
	c := &crashes{random: rand.New(rand.NewPCG(7, 0)), slot: santoDomingo(2026, 9, 14, 17, 0, 0), deaf: true}
	found := 0
	for range 30 {
		doubled, _ := c.run(t)
		found += len(doubled)
	}
	t.Logf("FIGURE slots that do not count: %d publications too many in 30 rounds", found)
	if found == 0 {
		t.Error("the test is blind")
	}
}
