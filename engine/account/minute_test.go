package account

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// simpleMinute is the obvious implementation of the window.
type simpleMinute []time.Duration

func (p *simpleMinute) expire(now ClockReading) {
	*p = slices.DeleteFunc(*p, func(at time.Duration) bool { return now.Steady-at >= MinuteSpan })
}

func (p *simpleMinute) refund(at ClockReading) {
	if i := slices.Index(*p, at.Steady); i >= 0 {
		*p = slices.Delete(*p, i, i+1)
	}
}

// The window agrees with simpleMinute under admissions, refunds and evictions, and its memory is bounded by what is in
// it.
func TestL2_MinuteIsTheSimpleOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m minuteWindow
		var plain simpleMinute
		now := ClockReading{Wall: noon, Steady: time.Hour}
		most := 0
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			now.Steady += time.Duration(rapid.SampledFrom([]int{0, 0, 1, 300, 5000, 61_000}).Draw(t, "ms")) * time.Millisecond
			m.expire(now)
			plain.expire(now)
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				at := now
				at.Steady -= time.Duration(rapid.IntRange(0, 400).Draw(t, "ago")) * time.Millisecond
				m.refund(at)
				plain.refund(at)
			case 1:
				for range rapid.IntRange(1, 40).Draw(t, "burst") {
					m.add(now)
					plain = append(plain, now.Steady)
				}
			default:
				m.add(now)
				plain = append(plain, now.Steady)
			}
			most = max(most, len(plain))
			if !slices.Equal(m.active(), plain) {
				t.Fatalf("%v, want %v", m.active(), plain)
			}
			if cap(m.admitted) > minuteWaste*most+minuteWaste {
				t.Fatalf("%d places for at most %d admissions", cap(m.admitted), most)
			}
		}
	})
}

// minuteWaste bounds the capacity of a window in relation to what was in it.
const minuteWaste = 4

// movedMax bounds how many admissions one request moves on average.
const movedMax = 2

// The cost of a request does not depend on the size of the window.
func TestF11_MinuteCostsTheSame(t *testing.T) {
	for _, limit := range []int{60, 600, 60_000} {
		if moved := movedBy(&minuteWindow{}, limit); moved > movedMax {
			t.Errorf("with %d in the window a request moves %d others", limit, moved)
		}
	}
}

// movedBy is how many admissions a request moves on average in a full window. A move overwrites the first expired
// entry.
func movedBy(m *minuteWindow, limit int) int {
	now := ClockReading{Wall: noon, Steady: time.Hour}
	moved, requests := 0, 10*limit
	for range requests {
		now.Steady += MinuteSpan / time.Duration(limit)
		m.expire(now)
		gone, places, stay := m.expired, cap(m.admitted), len(m.active())
		m.add(now)
		if gone > m.expired || cap(m.admitted) != places {
			moved += stay
		}
	}
	return moved / requests
}
