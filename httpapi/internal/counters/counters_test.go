package counters

import "testing"

// TestLabels_Fixed: what clients and pages choose becomes one of a few labels.
func TestLabels_Fixed(t *testing.T) {
	for _, odd := range []int{-1, 0, 99, 299, 600, 1 << 40} {
		if label := statusLabel(odd); label != Other {
			t.Errorf("status %d is counted as %s", odd, label)
		}
	}
	for _, odd := range []string{"", "get", "PATCH", "BREW"} {
		if label := MethodLabel([]byte(odd)); label != Other {
			t.Errorf("method %q is counted as %s", odd, label)
		}
	}
}
