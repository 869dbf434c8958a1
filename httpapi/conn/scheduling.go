package conn

import (
	"log/slog"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// yieldsPerRoundWatching is after how many answers of all connections a round begins while requests are watched;
// while slots are given out it is after each. A connection tells of yieldsCounted answers at once, so that not
// every answer takes the lock.
const (
	yieldsPerRoundWatching = 128
	yieldsCounted          = 8
)

// A round takes several times as long while garbage is collected or other processes want the processor, and so does
// what new requests wait. Then fewer connections hold a slot, and a turn in each round.
const (
	roundLong  = 15 * time.Millisecond
	roundShort = roundLong / 2
	slotsMin   = 8
)

// schedulingRounds let busy connections yield to each other and to new ones.
//
// A goroutine that calls Gosched runs again behind those that are ready, and while every processor has a ready one the
// scheduler does not poll the network; its monitor thread does, every 10 to 20 ms, for 128 connections at a time. So
// now and then the busy connections wait in a round: when no goroutine is ready the scheduler polls the network, and
// gets the new requests, 128 at a time, and behind all of them the byte in the pipe that ends the round.
type schedulingRounds struct {
	clock           func() time.Time
	singleProcessor bool // then a connection yields after each answer, so that its next request is there when it is read

	mu        sync.Mutex
	yields    int         // answers since the last round
	active    atomic.Bool // a round is on; the byte is in the pipe; changes under mu
	ended     bool
	startedAt time.Time     // the round that is on
	finished  chan struct{} // closed at the end of the round
	number    atomic.Uint64 // changes under mu
	slotLimit atomic.Int32  // how many slots there are; changes under mu

	pipeReader, pipeWriter *os.File
	done                   chan struct{}
}

// startRounds starts the goroutine that ends rounds; close waits for it.
func startRounds(clock func() time.Time) (*schedulingRounds, error) {
	in, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	r := &schedulingRounds{clock: clock, singleProcessor: runtime.GOMAXPROCS(0) == 1, pipeReader: in, pipeWriter: out, finished: make(chan struct{}), done: make(chan struct{})}
	r.slotLimit.Store(slotsMax)
	go r.run()
	return r, nil
}

// yield lets other goroutines go first: on one processor those that are ready, and after each so many answers those
// that the network has news for; 0 is never. own counts the answers of one connection that are not among yields
// yet.
func (r *schedulingRounds) yield(each int, own *int) {
	if (each == 0 || !r.joinRound(each, own)) && r.singleProcessor {
		runtime.Gosched()
	}
}

// joinRound waits for the end of the round that is on, or is due; false: there is none.
func (r *schedulingRounds) joinRound(each int, own *int) bool {
	if *own++; *own < min(each, yieldsCounted) && !r.active.Load() {
		return false
	}
	r.mu.Lock()
	r.yields, *own = r.yields+*own, 0
	if !r.active.Load() && !r.ended && r.yields >= each {
		_, err := r.pipeWriter.Write([]byte{0})
		r.active.Store(err == nil)
		r.startedAt = r.clock()
	}
	open, over := r.active.Load() && !r.ended, r.finished
	r.mu.Unlock()
	if open {
		<-over
	}
	return open
}

// run ends each round when the network is polled.
func (r *schedulingRounds) run() {
	defer close(r.done)
	one := make([]byte, 1)
	for {
		_, err := r.pipeReader.Read(one)
		r.mu.Lock()
		room := r.slotLimit.Load()
		switch took := r.clock().Sub(r.startedAt); {
		case took > roundLong && r.active.Load():
			r.slotLimit.Store(max(slotsMin, room/2))
		case took < roundShort && r.active.Load():
			r.slotLimit.Store(min(slotsMax, room+room/4))
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

// close ends the round and the goroutine.
func (r *schedulingRounds) close() {
	_ = r.pipeWriter.Close() // nothing is lost with a pipe
	<-r.done
	_ = r.pipeReader.Close()
}

// schedulingRounds are those of all listeners, nil where there can be none.
func (w *LoadShedder) schedulingRounds(log *slog.Logger) *schedulingRounds {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rounds != nil || w.ended {
		return w.rounds
	}
	turns, err := startRounds(w.clock)
	if err != nil {
		log.Warn("newcomers may wait 20 ms for their turn while the node is busy", "cause", err.Error())
		return nil
	}
	w.rounds, w.slots.rounds = turns, turns
	return turns
}
