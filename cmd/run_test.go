package cmd

import "testing"

// A node whose data fills more than half of the limit for small nodes gets twice what its data takes.
func TestMemoryLimit(t *testing.T) {
	for heap, want := range map[uint64]int64{0: 272 << 20, 100 << 20: 272 << 20, 1 << 30: 2 << 30} {
		if got := memoryLimit(heap); got != want {
			t.Errorf("a heap of %d: a limit of %d, want %d", heap, got, want)
		}
	}
}
