//go:build !race

package record

import "testing"

// TestF8_DecodingAllocatesNothing measures a replay, and the encoding of frequent events. The race detector allocates
// too, so it skips this test.
func TestF8_DecodingAllocatesNothing(t *testing.T) {
	d, memory := NewDecoder(), &Arena{}
	d.UseArena(memory)
	for name, most := range map[string]float64{"refreshed-typed": 0, "leased": 1} { // its key's text
		event := samples()[name]
		record := encoded(event)
		got := testing.AllocsPerRun(200, func() {
			memory.Reset()
			if _, err := d.Event(record); err != nil {
				t.Fatal(err)
			}
		})
		if got > most {
			t.Errorf("%s: %v allocations, at most %v", name, got, most)
		}
		if got := testing.AllocsPerRun(200, func() { encoded(event) }); got > 2 {
			t.Errorf("%s: %v allocations to write it, at most 2", name, got)
		}
	}
}
