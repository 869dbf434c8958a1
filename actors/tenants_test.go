package actors

import (
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

func TestL1_CleanStopCostsNothing(t *testing.T) {
	n := startNode(t, Config{Terms: engine.Terms{Allowance: engine.Allowance{Minute: 1000}}})
	busy, aside := n.join(1, 1), n.join(2, 1)
	if got := n.admitted(busy.keys[0], 5) + n.admitted(aside.keys[0], 7); got != 12 {
		t.Fatalf("%d of 12 admitted", got)
	}
	n.pass(2 * time.Minute)
	n.sweepAll()
	n.admitted(busy.keys[0], 1)
	if live := n.tenants.living.Load(); live != 1 {
		t.Fatalf("%d accounts live, want 1", live)
	}
	n.restart()
	if a, b := n.spent(busy.token), n.spent(aside.token); a != 6 || b != 7 {
		t.Errorf("after a clean stop %d and %d are spent, want 6 and 7", a, b)
	}
	n.admitted(busy.keys[0], 1)
	n.crash()
	if a, b := n.spent(busy.token), n.spent(aside.token); a != 6+engine.LeaseDefault || b != 7 {
		t.Errorf("after a crash %d and %d are spent, want %d and 7", a, b, 6+engine.LeaseDefault)
	}
}
