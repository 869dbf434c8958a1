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

// TestO2_RoundsBegin: a round begins after so many responses. Any connection that yields joins a round, and waits for
// its end.
func TestO2_RoundsBegin(t *testing.T) {
	r := must(startRounds(bubbleNow))
	defer r.close()
	for _, perRound := range []int{1, yieldsPerRoundWatching, yieldsPerRoundWatching} {
		own, calls := 0, 1
		for ; calls <= perRound && !r.joinRound(perRound, &own); calls++ {
		}
		if calls != perRound {
			t.Errorf("a round after %d responses, want %d", calls, perRound)
		}
	}
	joined := 0
	for tries := 0; joined < 20 && tries < 10_000; tries++ { // a round may end before the connection has joined
		before := r.number.Load()
		r.active.Store(true)
		must(r.pipeWriter.Write([]byte{0}))
		if r.joinRound(yieldsPerRoundWatching, new(int)) {
			joined++
			if r.number.Load() == before {
				t.Fatal("a connection does not wait for the end of a round")
			}
		}
	}
	if joined == 0 {
		t.Error("no connection joins a round")
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

// TestO2_RoundsReadAll: each new client that was there when a round began is served before it ends. Control: Gosched
// serves only one part of them.
func TestO2_RoundsReadAll(t *testing.T) {
	for _, processors := range []int{1, 2} {
		checkRound(t, processors)
	}
}

func checkRound(t *testing.T, processors int) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
	const newClients = 300
	const partMax = 128 // how many the scheduler takes at a time; the last of them may run behind us
	const tries = 20    // where others want the processor, its watcher asks the network too, and lets a second part run behind us
	r := must(startRounds(bubbleNow))
	defer r.close()
	servedIn := func(giveWay func()) int64 {
		var served atomic.Int64
		var all sync.WaitGroup
		var ins []*os.File
		for range newClients {
			out, in, err := os.Pipe()
			ok(t, err)
			defer in.Close()
			ins = append(ins, in)
			all.Go(func() {
				defer out.Close()
				must(out.Read(make([]byte, 1)))
				served.Add(1)
			})
		}
		runtime.Gosched() // they wait now
		for _, in := range ins {
			must(in.Write([]byte{0}))
		}
		giveWay()
		got := served.Load()
		all.Wait()
		return got
	}
	with, without := int64(0), int64(0)
	if processors == 1 {
		without = newClients
	}
	for try := 0; try < tries && (with < newClients-partMax || without >= newClients-partMax); try++ {
		with = max(with, servedIn(func() { r.yield(1, new(int)) }))
		without = min(without, servedIn(runtime.Gosched))
	}
	if with < newClients-partMax || without >= newClients-partMax {
		t.Errorf("with %d processors a round served %d of %d new clients, Gosched %d", processors, with, newClients, without)
	}
}

// TestO2_LongRoundsTakeSlots: after a long round there are fewer slots, after short ones all again, step by step.
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
			t.Fatalf("%d slots are held with room for %d, and who waits has one: %t", len(w.slots.holders), slotsMin, len(waits.admitted) == 1)
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

// TestO2_TooManySlots: a connection keeps its slot, unless there are fewer now, or it was served often and others wait.
func TestO2_TooManySlots(t *testing.T) {
	r := &schedulingRounds{}
	r.slotLimit.Store(slotsMax)
	w := NewLoadShedder(fakeNow, time.Second)
	w.slots.rounds = r
	c := holdingSlots(t, &w.slots, slotsMin+1, fakeNow())[slotsMin]
	for range 2 * slotRequestsMax {
		if !w.holdsSlot(c, Anonymous, fakeNow()) {
			t.Fatal("a connection that has the next request already lost the slot")
		}
	}
	w.queue.add(newQueuedRequest(Anonymous, fakeNow()))
	if w.holdsSlot(c, Anonymous, fakeNow()) {
		t.Error("it keeps the slot for ever")
	}
	w.queue, c.slot.served = requestQueue{}, 0
	r.slotLimit.Store(slotsMin)
	if w.holdsSlot(c, Anonymous, fakeNow()) {
		t.Errorf("%d slots are held, there are %d", len(w.slots.holders), slotsMin)
	}
}

// TestO1_Prefetch: a connection whose next request has come reads it and keeps its slot; one that has to wait
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
		t.Fatalf("%q (%v), has a slot: %t", into[:n], err, c.slot.held)
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
