//go:build !race

package mailbox

import (
	"testing"
	"time"
)

// The race detector allocates too, so it does not see this test.
func TestWarmAskDoesNotAllocate(t *testing.T) {
	s, _ := newTestSystem(t, 100)
	actor := spawnTestActor(t, s, &testActor{behave: answering})
	var requests RequestPool[int, int]
	allocations := testing.AllocsPerRun(1000, func() {
		if answer, err := requests.Ask(actor, 4, time.Minute); err != nil || answer != 8 {
			t.Errorf("%d, %v", answer, err)
		}
	})
	if allocations != 0 {
		t.Errorf("%v allocations, want 0", allocations)
	}
	actor.Stop()
}
