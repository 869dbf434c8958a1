//go:build faults

package actors

import (
	"math/rand/v2"
	"testing"
)

// TestFaultsKilledNodeKeepsAccounts is TestW1_KilledNodeKeepsAccounts over 1,000 kills.
func TestFaultsKilledNodeKeepsAccounts(t *testing.T) {
	t.Parallel()
	w := &witness{t: t, dir: t.TempDir(), random: rand.New(rand.NewPCG(3, 4))}
	w.run(1000)
	w.report()
}
