//go:build faults

package actors

import (
	"testing"

	"pgregory.net/rapid"
)

// TestFaultsQ6_AccountsFollowTheContract is TestQ6_AccountsFollowTheContract over 100,000 sequences.
func TestFaultsQ6_AccountsFollowTheContract(t *testing.T) {
	t.Parallel()
	const sequences = 100_000
	c := &contractCheck{most: sequences / accountsInWorld}
	for round := 0; c.worlds < c.most && !t.Failed(); round++ {
		rapid.Check(t, c.play)
		if round%10 == 9 {
			t.Logf("PROGRESS %d sequences", c.worlds*accountsInWorld)
		}
	}
	c.report(t)
	t.Run("control", TestQ6_Control_JournalThatForgets)
}
