package conn

import (
	"log/slog"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// yieldsPerRoundWatching is after how many answers of all connections a round begins while requests are watched; while slots are given out
// it is after each. A connection tells of yieldsCounted answers at once, so that not every answer takes the lock.
const (
	yieldsPerRoundWatching = 64
	yieldsCounted          = 8
)

// While the garbage is collected, or something else wants the processor, a round takes several times as long as usual, and so does what
// newcomers wait. Then fewer have a seat, and a turn in each round.
const (
	roundLong  = 15 * time.Millisecond
	roundShort = roundLong / 2
	slotsMin   = 8
)

// schedulingRounds are how connections give way to each other.
//
// A goroutine that only steps back is run again behind those that are ready, and as long as each processor has somebody ready the scheduler
// does not ask the network who else has come: its watchdog does, each ten milliseconds or twenty, for 128 at a time. Whoever was not among
// the busy would wait for that. So now and then the busy wait in a round: when nobody is ready any more the scheduler asks the network,
// which gives it the newcomers, 128 at a time, and behind all who are there already the byte in a pipe that ends the round.
type schedulingRounds struct {
	clock           func() time.Time
	singleProcessor bool // there is one processor: who has answered steps back in any case, so that the next request is there when it is read

	mu        sync.Mutex
	yields    int         // answers since the last round
	active    atomic.Bool // a round is on; the byte is in the pipe; changes under mu
	ended     bool
	startedAt time.Time     // the round that is on
	finished  chan struct{} // closed at the end of the round
	number    atomic.Uint64 // changes under mu
	slotLimit atomic.Int32  // how many may have a seat; changes under mu

	pipeReader, pipeWriter *os.File
	done                   chan struct{}
}

// startRounds begins the goroutine that ends rounds; end waits for it.
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

// yield lets other goroutines go first: on one processor those that are ready, and after each so many answers those that the network has
// news for; 0 is never. own counts the answers of one connection that are not among yields yet.
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

// run ends each round when the network is asked.
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

// close lets everybody go who waits.
func (r *schedulingRounds) close() {
	_ = r.pipeWriter.Close() // nothing is lost with a pipe
	<-r.done
	_ = r.pipeReader.Close()
}

// schedulingRounds are the rounds of all listeners, nil where there can't be any.
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
