package cluster

import (
	"testing"
	"time"
)

// TestHandingOver holds that a hand-over is no lost majority, and that nothing else is taken for one.
func TestHandingOver(t *testing.T) {
	for name, c := range map[string]struct {
		leader string
		ago    time.Duration
		want   bool
	}{
		"a leader that steps down":           {"", 200 * time.Millisecond, true},
		"no leader for too long":             {"", handOver, false},
		"a leader that is not heard":         {"node-1", 200 * time.Millisecond, false},
		"a follower that begins to look":     {"", seenWithin, false},
		"a node that has never had a leader": {"", 1<<63 - 1, false},
	} {
		if got := handingOver(c.leader, c.ago); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
