package cluster

import (
	"slices"
	"testing"
	"time"
)

// TestBootstrap checks that no stream is created before all members are reachable: the last one to start has the
// records, which come first on every node.
func TestBootstrap(t *testing.T) {
	t.Parallel()
	f := newTestCluster(t)
	appendOutside(t, f.configs[2].Dir, "single 1", "single 2")
	done := make(chan error, 2)
	for i := range 2 {
		go func() {
			n, err := startNode(f.parent.Context(), f.configs[i])
			f.nodes[i] = n
			done <- err
		}()
	}
	select {
	case err := <-done:
		t.Fatalf("started without the third: %v", err)
	case <-time.NewTimer(9 * watchInterval).C:
	}
	third, err := startNode(t.Context(), f.configs[2])
	for range 2 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if f.nodes[2] = third; err != nil {
		t.Fatal(err)
	}
	f.nodes[0].mustAppend(t, "together")
	if log := f.awaitSameRecords(0); !slices.Equal(log, []string{"single 1", "single 2", "together"}) {
		t.Errorf("log %q", log)
	}
}
