//go:build !race

package record

import "testing"

// TestEncodingAllocatesLittle measures the encoding of frequent events. The race detector allocates too, so it skips
// this test.
func TestEncodingAllocatesLittle(t *testing.T) {
	for _, name := range []string{"refreshed-typed", "leased"} {
		event := samples()[name]
		if got := testing.AllocsPerRun(200, func() { encoded(event) }); got > 2 {
			t.Errorf("%s: %v allocations to write it, at most 2", name, got)
		}
	}
}
