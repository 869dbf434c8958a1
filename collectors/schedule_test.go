package collectors

import (
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

// TestT2_DailySlots looks at every day of thirty years: three slots, at the same hours of UTC, because Santo Domingo has no
// summer time.
func TestT2_DailySlots(t *testing.T) {
	schedule := Daily()
	slot := santoDomingo(2001, time.January, 1, 8, 0, 0)
	for days := 0; slot.Year() < 2031; days++ {
		for i, hour := range []int{12, 16, 21} { // 08:00, 12:00, 17:00 four hours behind
			if slot.Hour() != hour || slot.Minute() != 0 || slot.Second() != 0 || slot.Location() != time.UTC {
				t.Fatalf("slot %d of day %d is %v", i, days, slot)
			}
			if got := schedule.Last(slot); !got.Equal(slot) {
				t.Fatalf("Last(%v) = %v: a slot that is now is past", slot, got)
			}
			next := schedule.Next(slot)
			if got := schedule.Last(next.Add(-time.Nanosecond)); !got.Equal(slot) {
				t.Fatalf("Last just before %v = %v, want %v", next, got, slot)
			}
			if got := schedule.Next(slot.Add(-time.Nanosecond)); !got.Equal(slot) {
				t.Fatalf("Next just before %v = %v", slot, got)
			}
			slot = next
		}
	}
}

// TestT2_DailyIsTheEngines wants the collector to keep to the refresh slots that clients are told.
func TestT2_DailyIsTheEngines(t *testing.T) {
	at := santoDomingo(2026, time.March, 1, 0, 0, 0)
	for range 1000 {
		if got, want := Daily().Next(at), engine.NextRefresh(at); !got.Equal(want) {
			t.Fatalf("Next(%v) = %v, want %v", at, got, want)
		}
		at = at.Add(37 * time.Minute)
	}
}

func TestEvery(t *testing.T) {
	schedule := Every(10 * time.Second)
	at := time.Date(2026, 9, 18, 12, 0, 7, 5, time.FixedZone("", 3600))
	if got, want := schedule.Last(at), time.Date(2026, 9, 18, 11, 0, 0, 0, time.UTC); !got.Equal(want) || got.Location() != time.UTC {
		t.Errorf("Last = %v, want %v", got, want)
	}
	if got, want := schedule.Next(at), time.Date(2026, 9, 18, 11, 0, 10, 0, time.UTC); !got.Equal(want) {
		t.Errorf("Next = %v, want %v", got, want)
	}
	if slot := schedule.Last(at); !schedule.Last(slot).Equal(slot) || !schedule.Next(slot).After(slot) {
		t.Errorf("a slot is its own Last, and never its own Next: %v", slot)
	}
	defer func() {
		if recover() == nil {
			t.Error("Every(0) made a schedule")
		}
	}()
	Every(0)
}
