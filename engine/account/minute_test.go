package account

import (
	"testing"
	"time"
)

// minuteWaste bounds the capacity of a window in relation to what was in it.
const minuteWaste = 4

// movedMax bounds how many admissions one request moves on average.
const movedMax = 2

// The cost of a request does not depend on the size of the window, and the memory is bounded by what was in it.
func TestF11_MinuteCostsTheSame(t *testing.T) {
	for _, limit := range []int{60, 600, 60_000} {
		var m minuteWindow
		if moved := movedBy(&m, limit); moved > movedMax || cap(m.admitted) > minuteWaste*limit {
			t.Errorf("with %d in the window a request moves %d others; there is room for %d", limit, moved, cap(m.admitted))
		}
	}
}

// movedBy is how many admissions a request moves on average in a full window. A move overwrites the first expired
// entry.
func movedBy(m *minuteWindow, limit int) int {
	now := ClockReading{Wall: noon, Monotonic: time.Hour}
	moved, requests := 0, 10*limit
	for range requests {
		now.Monotonic += MinuteSpan / time.Duration(limit)
		m.expire(now)
		gone, places, stay := m.expired, cap(m.admitted), len(m.active())
		m.add(now)
		if gone > m.expired || cap(m.admitted) != places {
			moved += stay
		}
	}
	return moved / requests
}
