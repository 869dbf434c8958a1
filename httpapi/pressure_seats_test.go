package httpapi

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestO1_ASeatIsOneConnections: whoever comes, asks again for something else, rests, waits or goes, in whatever order, each seat has one
// connection, each connection at most one seat, and both know it.
func TestO1_ASeatIsOneConnections(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := fakeNow()
		w := newWatch(nil, time.Second)
		conns := make([]*slottedTCP, seatsMax+8)
		waits := map[*slottedTCP]*waiter{}
		for i := range conns {
			conns[i] = &slottedTCP{}
			if i >= len(conns)-seatsMax {
				w.seats.take(conns[i], laneAnonymous, now)
			}
		}
		leave := func(c *slottedTCP) {
			if c.seat.held {
				w.seats.leave(c)
				w.seatNext(now)
			}
		}
		for range 150 {
			now = now.Add(rapid.SampledFrom([]time.Duration{0, 0, 0, time.Millisecond, seatSlow + 1}).Draw(t, "pause"))
			c := rapid.SampledFrom(conns[:16]).Draw(t, "connection")
			if place, l := waits[c], lane(rapid.IntRange(int(laneKeyed), int(lanes)-1).Draw(t, "lane")); place != nil {
				if len(place.turn) == 0 {
					w.waiting.remove(place)
				}
				delete(waits, c)
			} else if rapid.Bool().Draw(t, "asks") {
				if !w.keeps(c, l, now) {
					waits[c] = &waiter{conn: c, lane: l, since: now, turn: make(chan bool, 1)}
					w.waiting.add(waits[c])
					leave(c)
				}
			} else if leave(c); rapid.Bool().Draw(t, "fill") {
				w.fill(now, 0)
			}
			held, waiting := 0, 0
			for _, place := range waits {
				if len(place.turn) == 0 {
					waiting++
				}
			}
			for l := range lanes {
				for place := w.waiting[l].oldest; place != nil; place = place.newer {
					if waiting--; waits[place.conn] != place || place.newer == nil && w.waiting[l].newest != place {
						t.Fatal("somebody waits who does not, or a queue has no end")
					}
				}
			}
			if waiting != 0 {
				t.Fatalf("%d who wait are nowhere", waiting)
			}
			for i, one := range w.seats.held {
				if !one.seat.held || one.seat.at != i {
					t.Fatalf("seat %d belongs to a connection with %+v", i, one.seat)
				}
			}
			for _, one := range conns {
				if one.seat.held {
					held++
				}
			}
			if held != len(w.seats.held) || held > seatsMax {
				t.Fatalf("%d connections have %d seats", held, len(w.seats.held))
			}
		}
	})
}
