package httpapi

import (
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// heardAfter is how many turns the busy take, together, until somebody is heard for whom the network has something; turnsMax is never.
func heardAfter(t *testing.T, giveWay func()) int64 {
	t.Helper()
	const busy, turnsMax = 8, 100_000
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	defer in.Close()
	var turns atomic.Int64
	heard := make(chan int64, 1)
	var all sync.WaitGroup
	all.Go(func() {
		if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
			t.Error(err)
		}
		heard <- turns.Load()
	})
	runtime.Gosched() // it waits now
	if _, err := in.Write([]byte{0}); err != nil {
		t.Fatal(err)
	}
	for range busy {
		all.Go(func() {
			for len(heard) == 0 && turns.Add(1) < turnsMax {
				giveWay()
			}
		})
	}
	all.Wait()
	return <-heard
}

// soonest is heardAfter in the best of a few times: of two processors one may be busy with something else.
func soonest(t *testing.T, giveWay func()) int64 {
	t.Helper()
	best := heardAfter(t, giveWay)
	for range 9 {
		best = min(best, heardAfter(t, giveWay))
	}
	return best
}

// TestO2_RoundsLetNewcomersIn: somebody new is heard after a round of the busy, however many processors they keep so; when they only step
// back, after ten milliseconds of them.
func TestO2_RoundsLetNewcomersIn(t *testing.T) {
	for _, processors := range []int{1, 2} {
		func() {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
			r, err := startRounds(bubbleNow)
			if err != nil {
				t.Fatal(err)
			}
			with := soonest(t, func() { r.giveWay(1) })
			now := soonest(t, func() { r.giveWay(watchedEach) })
			r.end()
			stepBack := func() { r.giveWay(1) } // as when there is no pipe
			without := max(heardAfter(t, stepBack), heardAfter(t, stepBack), heardAfter(t, stepBack))
			t.Logf("%d processors: heard after %d turns of the busy, %d when each %dth ends a round, %d without rounds", processors, with, now,
				watchedEach, without)
			if with > 16 || now > int64(processors)*(watchedEach+16) {
				t.Errorf("%d processors: heard after %d and %d turns", processors, with, now)
			}
			if processors == 1 && without < 4*watchedEach {
				t.Errorf("%d processors: it is as good without (%d): rounds are not needed any more", processors, without)
			}
		}()
	}
}

// TestO2_RoundsEnd: whoever waits in a round when the server ends goes on, and nobody waits afterwards.
func TestO2_RoundsEnd(t *testing.T) {
	r, err := startRounds(bubbleNow)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			for range 50 {
				r.giveWay(1)
			}
		})
	}
	r.giveWay(1)
	r.end()
	all.Wait()
	if before := r.number.Load(); r.wait(1) || r.number.Load() != before {
		t.Error("a round after the end")
	}
}

// heardIn is how many of so many newcomers, for whom the network has something, are heard before giveWay returns.
func heardIn(t *testing.T, newcomers int, giveWay func()) int64 {
	t.Helper()
	var heard atomic.Int64
	var all sync.WaitGroup
	doors := make([]*os.File, newcomers)
	for i := range doors {
		out, in, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		doors[i] = in
		all.Go(func() {
			defer out.Close()
			if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
				t.Error(err)
			}
			heard.Add(1)
		})
	}
	runtime.Gosched() // they wait now
	for _, in := range doors {
		if _, err := in.Write([]byte{0}); err != nil {
			t.Fatal(err)
		}
	}
	giveWay()
	got := heard.Load()
	all.Wait()
	return got
}

// TestO2_RoundsHearAll: whoever was there when a round began is heard before it ends, also when the network gives them in several parts.
func TestO2_RoundsHearAll(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const newcomers = 400
	const partMax = 128 // how many the scheduler takes at a time; the last of them may run behind us
	const tries = 10    // where others want the processor, its watcher asks the network too, and lets a second part run behind us
	r, err := startRounds(bubbleNow)
	if err != nil {
		t.Fatal(err)
	}
	defer r.end()
	with, without := int64(0), int64(newcomers)
	for range tries {
		with = max(with, heardIn(t, newcomers, func() { r.giveWay(1) }))
		without = min(without, heardIn(t, newcomers, runtime.Gosched))
	}
	if with < newcomers-partMax {
		t.Errorf("of %d newcomers a round heard %d", newcomers, with)
	}
	if without >= newcomers-partMax {
		t.Errorf("of %d newcomers %d were heard without a round: rounds are not needed any more", newcomers, without)
	}
}

// TestO2_LongRoundsTakeSeats: after a round that took long fewer may have a seat: who has one too many gives it to nobody. After short
// rounds all may again, step by step.
func TestO2_LongRoundsTakeSeats(t *testing.T) {
	var now, took atomic.Int64
	r, err := startRounds(func() time.Time { return fakeNow().Add(time.Duration(now.Add(took.Load()))) }) // it is read at both ends of a round
	if err != nil {
		t.Fatal(err)
	}
	defer r.end()
	after := func(each time.Duration) int {
		took.Store(int64(each))
		r.wait(1)
		return int(r.room.Load())
	}
	w := newWatch(fakeNow, time.Second)
	w.useRounds(r)
	var conns []*slottedTCP
	for range seatsMax {
		c := &slottedTCP{}
		c.watch = w
		if conns = append(conns, c); !w.seats.take(c, laneAnonymous, fakeNow()) {
			t.Fatal("a free seat can't be taken")
		}
	}
	for i, want := range []int{seatsMax / 2, seatsMax / 4, seatsMin, seatsMin} {
		if got := after(roundLong + 1); got != want {
			t.Fatalf("long round %d: room for %d, want %d", i+1, got, want)
		}
	}
	waits := &waiter{conn: &slottedTCP{}, lane: laneAnonymous, since: fakeNow(), turn: make(chan bool, 1)}
	w.waiting.add(waits)
	for i, c := range conns {
		w.rest(c)
		if left := seatsMax - i - 1; left >= seatsMin != (len(waits.turn) == 0) {
			t.Fatalf("%d seats are held with room for %d, and who waits has one: %t", len(w.seats.held), seatsMin, len(waits.turn) == 1)
		}
	}
	if got := after((roundLong + roundShort) / 2); got != seatsMin {
		t.Errorf("a round that is neither long nor short: room for %d", got)
	}
	before := seatsMin
	for before < seatsMax {
		got := after(roundShort - 1)
		if got <= before || got > before+before/4 {
			t.Fatalf("a short round with room for %d: then %d", before, got)
		}
		before = got
	}
}

// TestO2_TooManySeats: who has a seat and asks again keeps it, unless there are fewer seats now than are held, or it was served often
// and somebody waits.
func TestO2_TooManySeats(t *testing.T) {
	r := &rounds{}
	r.room.Store(seatsMax)
	w, c := newWatch(fakeNow, time.Second), &slottedTCP{}
	w.useRounds(r)
	for range seatsMin {
		w.seats.take(&slottedTCP{}, laneAnonymous, fakeNow())
	}
	w.seats.take(c, laneAnonymous, fakeNow())
	for range 2 * seatTurns {
		if !w.keeps(c, laneAnonymous, fakeNow()) {
			t.Fatal("who has the next request already lost the seat")
		}
	}
	w.waiting.add(&waiter{lane: laneAnonymous, since: fakeNow(), turn: make(chan bool, 1)})
	if w.keeps(c, laneAnonymous, fakeNow()) {
		t.Error("it keeps the seat for ever")
	}
	w.waiting, c.seat.turns = waiting{}, 0
	r.room.Store(seatsMin)
	if w.keeps(c, laneAnonymous, fakeNow()) {
		t.Errorf("%d seats are held, there are %d", len(w.seats.held), seatsMin)
	}
}

// TestO1_ReadsAhead: while seats are given out, a connection whose next request has come reads it and keeps its seat; one that has to wait
// for it leaves its seat first.
func TestO1_ReadsAhead(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	caller, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer caller.Close()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	w := newWatch(fakeNow, time.Second)
	w.seating.Store(true)
	c := &slottedTCP{gatherer: gatherer{lazyDeadlines: lazyDeadlines{Conn: conn}, tcp: conn.(*net.TCPConn), watch: w, buffer: 64}, requests: 1}
	if c.asked() == nil {
		t.Skip("whether something has come is asked on Linux alone")
	}
	w.seats.take(c, laneAnonymous, fakeNow())
	if _, err := caller.Write([]byte("GET / HTTP")); err != nil {
		t.Fatal(err)
	}
	for !c.pending() {
		runtime.Gosched()
	}
	into := make([]byte, 64)
	if n, err := c.Read(into); err != nil || string(into[:n]) != "GET / HTTP" || !c.seat.held {
		t.Fatalf("%q (%v), has a seat: %t", into[:n], err, c.seat.held)
	}
	go func() {
		for held := true; held; runtime.Gosched() {
			w.mu.Lock()
			held = c.seat.held
			w.mu.Unlock()
		}
		_, _ = caller.Write([]byte("/1.1\r\n")) // what is read is looked at
	}()
	if n, err := c.Read(into); err != nil || string(into[:n]) != "/1.1\r\n" {
		t.Errorf("%q (%v)", into[:n], err)
	}
}
