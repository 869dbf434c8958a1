package conn

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

// readFromPipes starts newcomers that read one byte from a pipe each, and writes those bytes. Each newcomer calls
// served when it has its byte.
func readFromPipes(t *testing.T, newcomers int, all *sync.WaitGroup, served func()) {
	t.Helper()
	var ins []*os.File
	for range newcomers {
		out, in, err := os.Pipe()
		ok(t, err)
		t.Cleanup(func() { in.Close() })
		ins = append(ins, in)
		all.Go(func() {
			defer out.Close()
			if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
				t.Error(err)
			}
			served()
		})
	}
	runtime.Gosched() // they wait now
	for _, in := range ins {
		must(in.Write([]byte{0}))
	}
}

// busy is how many goroutines keep the processors busy in yieldsUntilRead.
const busy = 8

// yieldsUntilRead is how many times they yield until a newcomer is served; the best of a few tries, as a processor
// may be busy otherwise.
func yieldsUntilRead(t *testing.T, yield func(own *int)) (best int64) {
	t.Helper()
	const turnsMax, tries = 100_000, 10
	best = turnsMax
	for range tries {
		var turns atomic.Int64
		var all sync.WaitGroup
		served := make(chan int64, 1)
		readFromPipes(t, 1, &all, func() { served <- turns.Load() })
		for range busy {
			all.Go(func() {
				own := 0
				for len(served) == 0 && turns.Add(1) < turnsMax {
					yield(&own)
				}
			})
		}
		all.Wait()
		best = min(best, <-served)
	}
	return best
}

// TestO2_RoundsPollTheNetwork: a newcomer is served after a round of the busy, however many processors they keep so.
func TestO2_RoundsPollTheNetwork(t *testing.T) {
	for _, processors := range []int{1, 2} {
		func() {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
			r := must(startRounds(bubbleNow))
			defer r.close()
			with := yieldsUntilRead(t, func(own *int) { r.yield(1, own) })
			now := yieldsUntilRead(t, func(own *int) { r.yield(yieldsPerRoundWatching, own) })
			if with > 16 || now > int64(processors)*(yieldsPerRoundWatching+16)+busy*yieldsCounted {
				t.Errorf("%d processors: served after %d turns, and %d when each %dth ends a round", processors, with, now, yieldsPerRoundWatching)
			}
		}()
	}
}

// TestO2_RoundsEnd: what waits in a round when the server ends goes on, and nothing waits afterwards.
func TestO2_RoundsEnd(t *testing.T) {
	r := must(startRounds(bubbleNow))
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			for range 50 {
				r.yield(1, new(int))
			}
		})
	}
	r.yield(1, new(int))
	r.close()
	all.Wait()
	if before := r.number.Load(); r.joinRound(1, new(int)) || r.number.Load() != before {
		t.Error("a round after the end")
	}
}

// TestO2_RoundsReadAll: each newcomer that was there when a round began is served before it ends. Control: giving
// way hears one part.
func TestO2_RoundsReadAll(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const newcomers = 300
	const partMax = 128 // how many the scheduler takes at a time; the last of them may run behind us
	const tries = 20    // where others want the processor, its watcher asks the network too, and lets a second part run behind us
	r := must(startRounds(bubbleNow))
	defer r.close()
	servedIn := func(giveWay func()) int64 {
		var served atomic.Int64
		var all sync.WaitGroup
		readFromPipes(t, newcomers, &all, func() { served.Add(1) })
		giveWay()
		got := served.Load()
		all.Wait()
		return got
	}
	with, without := int64(0), int64(newcomers)
	for try := 0; try < tries && (with < newcomers-partMax || without >= newcomers-partMax); try++ {
		with = max(with, servedIn(func() { r.yield(1, new(int)) }))
		without = min(without, servedIn(runtime.Gosched))
	}
	if with < newcomers-partMax || without >= newcomers-partMax {
		t.Errorf("of %d newcomers a round served %d, giving way once %d", newcomers, with, without)
	}
}

// TestO2_LongRoundsTakeSlots: after a long round there are fewer seats, after short ones all again, step by step.
func TestO2_LongRoundsTakeSlots(t *testing.T) {
	var now, took atomic.Int64
	r := must(startRounds(func() time.Time { return fakeNow().Add(time.Duration(now.Add(took.Load()))) })) // it is read at both ends of a round
	defer r.close()
	after := func(each time.Duration) int {
		took.Store(int64(each))
		r.joinRound(1, new(int))
		return int(r.slotLimit.Load())
	}
	w := NewLoadShedder(fakeNow, time.Second)
	w.slots.rounds = r
	conns := holdingSlots(t, &w.slots, slotsMax, fakeNow())
	for i, want := range []int{slotsMax / 2, slotsMax / 4, slotsMin, slotsMin} {
		if got := after(roundLong + 1); got != want {
			t.Fatalf("long round %d: room for %d, want %d", i+1, got, want)
		}
	}
	waits := newQueuedRequest(Anonymous, fakeNow())
	w.queue.add(waits)
	for i, c := range conns {
		c.shedder = w
		w.releaseIdle(c)
		if left := slotsMax - i - 1; left >= slotsMin != (len(waits.admitted) == 0) {
			t.Fatalf("%d seats are held with room for %d, and who waits has one: %t", len(w.slots.holders), slotsMin, len(waits.admitted) == 1)
		}
	}
	if got := after((roundLong + roundShort) / 2); got != slotsMin {
		t.Errorf("a round that is neither long nor short: room for %d", got)
	}
	for before := slotsMin; before < slotsMax; {
		got := after(roundShort - 1)
		if got <= before || got > before+before/4 {
			t.Fatalf("a short round with room for %d: then %d", before, got)
		}
		before = got
	}
}

// TestO2_TooManySlots: a connection that asks again keeps its seat, unless there are fewer now, or it was served
// often and another waits.
func TestO2_TooManySlots(t *testing.T) {
	r := &schedulingRounds{}
	r.slotLimit.Store(slotsMax)
	w := NewLoadShedder(fakeNow, time.Second)
	w.slots.rounds = r
	c := holdingSlots(t, &w.slots, slotsMin+1, fakeNow())[slotsMin]
	for range 2 * slotRequestsMax {
		if !w.holdsSlot(c, Anonymous, fakeNow()) {
			t.Fatal("a connection that has the next request already lost the seat")
		}
	}
	w.queue.add(newQueuedRequest(Anonymous, fakeNow()))
	if w.holdsSlot(c, Anonymous, fakeNow()) {
		t.Error("it keeps the seat for ever")
	}
	w.queue, c.slot.served = requestQueue{}, 0
	r.slotLimit.Store(slotsMin)
	if w.holdsSlot(c, Anonymous, fakeNow()) {
		t.Errorf("%d seats are held, there are %d", len(w.slots.holders), slotsMin)
	}
}

// TestO1_Prefetch: a connection whose next request has come reads it and keeps its seat; one that has to wait
// leaves it first.
func TestO1_Prefetch(t *testing.T) {
	l := listen(t)
	defer l.Close()
	caller := dial(t, l.Addr().String())
	conn := must(l.Accept())
	defer conn.Close()
	w := NewLoadShedder(fakeNow, time.Second)
	w.overloaded.Store(true)
	c := &Conn{transport: transport{lazyDeadlines: lazyDeadlines{Conn: conn}, tcp: conn.(*net.TCPConn), shedder: w, readBufferBytes: 64}, requests: 1}
	if c.socketInfo() == nil {
		t.Skip("whether something has come is asked on Linux only")
	}
	w.slots.acquire(c, Anonymous, fakeNow())
	write(t, caller, "GET / HTTP")
	eventually(t, c.pending)
	into := make([]byte, 64)
	if n, err := c.Read(into); err != nil || string(into[:n]) != "GET / HTTP" || !c.slot.held {
		t.Fatalf("%q (%v), has a seat: %t", into[:n], err, c.slot.held)
	}
	go func() {
		eventually(t, func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return !c.slot.held
		})
		_, _ = io.WriteString(caller, "/1.1\r\n") // what is read is looked at
	}()
	if n, err := c.Read(into); err != nil || string(into[:n]) != "/1.1\r\n" {
		t.Errorf("%q (%v)", into[:n], err)
	}
}
