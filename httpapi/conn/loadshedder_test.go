package conn

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

func newQueuedRequest(l Priority, since time.Time) *queuedRequest {
	return &queuedRequest{conn: &Conn{}, priority: l, arrivedAt: since, admitted: make(chan bool, 1)}
}

// holdingSlots are connections that have a slot each.
func holdingSlots(t testing.TB, s *admissionSlots, count int, since time.Time) (held []*Conn) {
	t.Helper()
	for range count {
		c := &Conn{}
		if held = append(held, c); !s.acquire(c, Anonymous, since) {
			t.Fatal("a free slot can't be taken")
		}
	}
	return held
}

func each(format string, count int) (addresses []string) {
	for i := range count {
		addresses = append(addresses, fmt.Sprintf(format, i))
	}
	return addresses
}

// TestO5_ClientLimit: each IPv4 address and IPv6 /64 has a limit, each /56 and /48 a larger one, at most a fifth of
// all; a proxy has none.
func TestO5_ClientLimit(t *testing.T) {
	proxy := netip.MustParseAddr("192.0.2.9")
	for name, one := range map[string]struct {
		most, conns int
		addresses   []string
		want        int
	}{
		"one address":          {128, 16384, []string{"192.0.2.1"}, 128},
		"a fifth":              {128, 100, []string{"192.0.2.1"}, 20},
		"at least one":         {128, 3, []string{"192.0.2.1"}, 1},
		"two addresses":        {128, 16384, []string{"192.0.2.1", "192.0.2.2"}, 256},
		"one /64":              {128, 16384, []string{"2001:db8::1", "2001:db8::ffff:1", "2001:db8::2%eth0"}, 128},
		"two /64":              {128, 16384, []string{"2001:db8::1", "2001:db8:0:1::1"}, 256},
		"one /56":              {128, 16384, each("2001:db8:0:1%02x::1", 256), 512},
		"one /48":              {128, 16384, each("2001:db8:0:%x::1", 4096), 2048},
		"two /48":              {128, 16384, append(each("2001:db8:1:%x::1", 4096), each("2001:db8:2:%x::1", 4096)...), 4096},
		"a fifth, by a /48":    {128, 1000, each("2001:db8:0:%x::1", 4096), 200},
		"a proxy":              {128, 16384, []string{"192.0.2.9"}, 300},
		"control: no limit":    {0, 16384, []string{"192.0.2.1"}, 300},
		"no limit by any flag": {-1, 16384, []string{"192.0.2.1"}, 300},
	} {
		s, taken := newClientLimit(one.most, one.conns, func(a netip.Addr) bool { return a == proxy }), 0
		for _, text := range one.addresses {
			for range 300 {
				if s.acquire(s.keyOf(netip.MustParseAddr(text))) {
					taken++
				}
			}
		}
		if taken != one.want {
			t.Errorf("%s: %d connections, want %d", name, taken, one.want)
		}
		first := s.keyOf(netip.MustParseAddr(one.addresses[0]))
		s.release(first)
		if !s.acquire(first) {
			t.Errorf("%s: what was given back can't be taken", name)
		}
	}
}

// TestO1_OverloadIsNoticed: windows in which most are late make overload, and only then; one pause makes none.
func TestO1_OverloadIsNoticed(t *testing.T) {
	for name, one := range map[string]struct {
		windows, late, prompt int
		want                  bool
	}{
		"most are late":                {4, 40, 10, true},
		"few are late":                 {4, 10, 40, false},
		"few, and all of them late":    {9, lateSamplesMin - 1, 0, true},
		"too few to say":               {20, 1, 0, false},
		"control: one pause":           {1, 40, 0, false},
		"a quiet node, and a late one": {10, 1, 0, false},
	} {
		now := fakeNow()
		w := NewLoadShedder(func() time.Time { return now }, time.Second)
		for range one.windows + 1 {
			for range one.late {
				w.record(now, true)
			}
			for range one.prompt {
				w.record(now, false)
			}
			now = now.Add(windowMin)
			if one.windows == 1 {
				one.late, one.prompt = 0, 40
			}
		}
		if got := w.overloaded.Load(); got != one.want {
			t.Errorf("%s: overload %t, want %t", name, got, one.want)
		}
	}
}

// TestO2_SlotsByPriority: a slot goes to the newest request of the highest priority that has not waited too long.
func TestO2_SlotsByPriority(t *testing.T) {
	now := fakeNow()
	var w requestQueue
	add := func(l Priority, age time.Duration) *queuedRequest {
		one := newQueuedRequest(l, now.Add(-age))
		w.add(one)
		return one
	}
	stale := add(Anonymous, time.Second)
	costly := add(AnonymousCostly, 0)
	older, younger := add(Anonymous, 20*time.Millisecond), add(Anonymous, 10*time.Millisecond)
	keyed := add(Keyed, 90*time.Millisecond)
	for i, want := range []*queuedRequest{keyed, younger, older, costly, nil} {
		if got := w.popNewest(now); got != want {
			t.Errorf("slot %d went to %+v, want %+v", i, got, want)
		}
	}
	if w.popExpired(now, Priority.queueAgeMax) != stale || !w.empty() {
		t.Error("who has waited too long is not the one who is refused")
	}
}

// TestO1_SlotsAreBounded: no more than slotsMax are served at once, and a stalled slot is taken.
func TestO1_SlotsAreBounded(t *testing.T) {
	now := fakeNow()
	var s admissionSlots
	holdingSlots(t, &s, slotsMax, now)
	if s.acquire(&Conn{}, Anonymous, now) {
		t.Error("more slots than there may be")
	}
	if !s.acquire(&Conn{}, Keyed, now) || len(s.holders) != slotsMax {
		t.Error("a better queue has no slot of a worse one")
	}
	if s.halfStalled(now) {
		t.Error("slots that were just taken are idle")
	}
	if later := now.Add(2 * slotStallMax); !s.halfStalled(later) || !s.acquire(&Conn{}, AnonymousCostly, later) {
		t.Error("a slot whose request waits for a disk can't be taken")
	}
	for i, c := range s.holders {
		if !c.slot.held {
			t.Fatalf("slot %d is %+v", i, c.slot)
		}
	}
}

// TestO3_RequestsAfterAPauseAreServedLate: late requests are served once half of the slots are unused.
func TestO3_RequestsAfterAPauseAreServedLate(t *testing.T) {
	const waits = "waits"
	for name, one := range map[string]struct {
		since time.Duration // since the slots were taken
		want  [3]string
	}{
		"a pause is over":   {2 * slotStallMax, [3]string{"served", "served", "refused"}},
		"control: overload": {0, [3]string{waits, waits, "refused"}},
	} {
		now := fakeNow()
		w := NewLoadShedder(nil, time.Second)
		holdingSlots(t, &w.slots, slotsMax, now.Add(-one.since))
		patience := Anonymous.queueAgeMax()
		var places []*queuedRequest
		for _, age := range []time.Duration{patience + idleGrace, patience + idleGrace - 1, patience} { // the oldest came first
			place := newQueuedRequest(Anonymous, now.Add(-age))
			places = append(places, place)
			w.queue.add(place)
		}
		w.endOverloadedWindow(now)
		slices.Reverse(places)
		for i, place := range places {
			got := waits
			select {
			case seated := <-place.admitted:
				got = map[bool]string{true: "served", false: "refused"}[seated]
			default:
			}
			if got != one.want[i] {
				t.Errorf("%s: request %d %s, want %s", name, i, got, one.want[i])
			}
		}
	}
}

// TestO1_EndsInOrder: while a node stops, requests with a slot are served, and no others begin to wait.
func TestO1_EndsInOrder(t *testing.T) {
	w := NewLoadShedder(fakeNow, time.Second)
	w.overloaded.Store(true)
	held, other := holdingSlots(t, &w.slots, slotsMax, fakeNow()), &Conn{}
	w.End()
	if !w.admit(held[0], Anonymous) || w.admit(other, Anonymous) {
		t.Error("a connection with a slot is refused, or one without is served")
	}
	w.overloaded.Store(false)
	if !w.admitOverloaded(other, Anonymous) {
		t.Error("a request is refused when the overload has just ended")
	}
}

// TestO1_QueueTimeIsBounded: without new requests, recheck rejects those that wait; a shutdown does so at once.
func TestO1_QueueTimeIsBounded(t *testing.T) {
	for name, ends := range map[string]bool{"no request": false, "shutdown": true} {
		synctest.Test(t, func(t *testing.T) {
			w := NewLoadShedder(bubbleNow, time.Second)
			w.overloaded.Store(true)
			w.windowStart = bubbleNow()
			began, place := bubbleNow(), newQueuedRequest(Anonymous, time.Time{})
			w.mu.Lock()
			w.enqueue(place)
			w.mu.Unlock()
			if ends {
				w.End()
			}
			if seated, took := <-place.admitted, bubbleNow().Sub(began); seated || took > 2*recheckEvery || ends && took > 0 {
				t.Errorf("%s: seated %t after %v", name, seated, took)
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			if !w.queue.empty() || w.recheckTimer != nil {
				t.Errorf("%s: a request waits, or the worst slot is looked for", name)
			}
		})
	}
}

// TestO1_OneSlotForAConnection: whatever happens, slots and connections belong to each other, one to one.
func TestO1_OneSlotForAConnection(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := fakeNow()
		w := NewLoadShedder(nil, time.Second)
		conns := make([]*Conn, slotsMax+8)
		waits := map[*Conn]*queuedRequest{}
		for i := range conns {
			conns[i] = &Conn{}
			if i >= len(conns)-slotsMax {
				w.slots.acquire(conns[i], Anonymous, now)
			}
		}
		for range 150 {
			now = now.Add(rapid.SampledFrom([]time.Duration{0, 0, 0, time.Millisecond, slotStallMax + 1}).Draw(t, "pause"))
			c := rapid.SampledFrom(conns[:16]).Draw(t, "connection")
			if place, l := waits[c], Priority(rapid.IntRange(int(Keyed), int(PriorityCount)-1).Draw(t, "priority")); place != nil {
				if len(place.admitted) == 0 {
					queue := &w.queue[place.priority]
					*queue = slices.DeleteFunc(*queue, func(one *queuedRequest) bool { return one == place })
				}
				delete(waits, c)
			} else if rapid.Bool().Draw(t, "asks") {
				if !w.holdsSlot(c, l, now) {
					waits[c] = newQueuedRequest(l, now)
					waits[c].conn = c
					w.queue.add(waits[c])
					w.passSlot(c, now)
				}
			} else if w.passSlot(c, now); rapid.Bool().Draw(t, "fill") {
				w.refill(now, 0)
			}
			held, waiting := 0, 0
			for _, place := range waits {
				if len(place.admitted) == 0 {
					waiting++
				}
			}
			for l := range PriorityCount {
				for _, place := range w.queue[l] {
					if waiting--; waits[place.conn] != place {
						t.Fatal("a request waits that does not")
					}
				}
			}
			if waiting != 0 {
				t.Fatalf("%d who wait are nowhere", waiting)
			}
			for i, one := range w.slots.holders {
				if !one.slot.held || slices.Index(w.slots.holders, one) != i {
					t.Fatalf("slot %d belongs to a connection with %+v", i, one.slot)
				}
			}
			for _, one := range conns {
				if one.slot.held {
					held++
				}
			}
			if held != len(w.slots.holders) || held > slotsMax {
				t.Fatalf("%d connections have %d slots", held, len(w.slots.holders))
			}
		}
	})
}
