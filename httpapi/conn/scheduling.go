package conn

import (
	"log/slog"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// A scheduling round begins after yieldsPerRoundWatching answers of all connections while LoadShedder is watching, and
// after each answer while it is limiting. A connection reports yieldsCounted answers at a time, so that not every
// answer takes the lock.
const (
	yieldsPerRoundWatching = 128
	yieldsCounted          = 8
)

// While garbage is collected or other processes use the processors, rounds take several times as long, and so do new
// requests, which wait for the end of a round. A round longer than roundLong halves the number of slots, down to
// slotsMin; one shorter than roundShort raises it by a quarter.
const (
	roundLong  = 15 * time.Millisecond
	roundShort = roundLong / 2
	slotsMin   = 8
)

// schedulingRounds let busy connections yield to each other and to new ones.
//
// Gosched is not enough. While any goroutine is ready to run, the scheduler does not poll the network; its monitor
// thread does, every 10 to 20 ms, for 128 connections at a time. So now and then all busy connections wait, which is a
// round. A byte is written to a pipe. As no goroutine is ready, the scheduler polls the network, 128 connections at a
// time, and runs the requests that came before the byte. Reading the byte ends the round.
type schedulingRounds struct {
	clock           func() time.Time
	singleProcessor bool // connections yield after each answer, so that their next request has come when they read

	mu        sync.Mutex
	yields    int         // answers since the last round
	active    atomic.Bool // there is a round, and its byte is in the pipe; changes under mu
	ended     bool
	startedAt time.Time     // of the last round
	finished  chan struct{} // closed at the end of the present or next round
	number    atomic.Uint64 // of the round; changes under mu
	slotLimit atomic.Int32  // number of admission slots; changes under mu

	pipeReader, pipeWriter *os.File
	done                   chan struct{}
}

// startRounds starts the goroutine that ends rounds; close waits for it.
func startRounds(clock func() time.Time) (*schedulingRounds, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	r := &schedulingRounds{clock: clock, singleProcessor: runtime.GOMAXPROCS(0) == 1, pipeReader: reader, pipeWriter: writer, finished: make(chan struct{}), done: make(chan struct{})}
	r.slotLimit.Store(slotsMax)
	go r.run()
	return r, nil
}

// yield lets other goroutines run after an answer. Each perRound answers begin a round; 0 means no rounds. Without a
// round it calls Gosched on a single processor. unreported counts the connection's answers that are not in yields yet.
func (r *schedulingRounds) yield(perRound int, unreported *int) {
	if (perRound == 0 || !r.joinRound(perRound, unreported)) && r.singleProcessor {
		runtime.Gosched()
	}
}

// joinRound begins a round if one is due, waits for the end of the present round, and reports whether there was one.
func (r *schedulingRounds) joinRound(perRound int, unreported *int) bool {
	if *unreported++; *unreported < min(perRound, yieldsCounted) && !r.active.Load() {
		return false
	}
	r.mu.Lock()
	r.yields, *unreported = r.yields+*unreported, 0
	if !r.active.Load() && !r.ended && r.yields >= perRound {
		_, err := r.pipeWriter.Write([]byte{0})
		r.active.Store(err == nil)
		r.startedAt = r.clock()
	}
	active, finished := r.active.Load() && !r.ended, r.finished
	r.mu.Unlock()
	if active {
		<-finished
	}
	return active
}

// run ends a round whenever the pipe's byte arrives.
func (r *schedulingRounds) run() {
	defer close(r.done)
	buf := make([]byte, 1)
	for {
		_, err := r.pipeReader.Read(buf)
		r.mu.Lock()
		limit := r.slotLimit.Load()
		switch elapsed := r.clock().Sub(r.startedAt); {
		case elapsed > roundLong && r.active.Load():
			r.slotLimit.Store(max(slotsMin, limit/2))
		case elapsed < roundShort && r.active.Load():
			r.slotLimit.Store(min(slotsMax, limit+limit/4))
		}
		r.active.Store(false)
		r.yields, r.ended = 0, err != nil
		r.number.Add(1)
		close(r.finished)
		r.finished = make(chan struct{})
		r.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// close ends the present round and the goroutine of run.
func (r *schedulingRounds) close() {
	_ = r.pipeWriter.Close() // closing a pipe loses no data
	<-r.done
	_ = r.pipeReader.Close()
}

// schedulingRounds returns the rounds, which all listeners share, and starts them at the first call. It returns nil
// without a LoadShedder, after End, or when there can't be a pipe.
func (w *LoadShedder) schedulingRounds(log *slog.Logger) *schedulingRounds {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rounds != nil || w.ended {
		return w.rounds
	}
	rounds, err := startRounds(w.clock)
	if err != nil {
		log.Warn("newcomers may wait 20 ms for their turn while the node is busy", "cause", err.Error())
		return nil
	}
	w.rounds, w.slots.rounds = rounds, rounds
	return rounds
}
