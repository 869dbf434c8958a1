package conn

import (
	"log/slog"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// watchedEach is how many times connections give way before all of them do so together, while requests are watched; while seats are given
// out they always do.
const watchedEach = 64

// While the garbage is collected, or something else wants the processor, a round takes several times as long as usual, and so does what
// newcomers wait. Then fewer have a seat, and a turn in each round.
const (
	roundLong  = 15 * time.Millisecond
	roundShort = roundLong / 2
	seatsMin   = 8
)

// rounds are how connections give way to each other.
//
// A goroutine that only steps back is run again behind those that are ready, and as long as each processor has somebody ready the scheduler
// does not ask the network who else has come: its watchdog does, each ten milliseconds or twenty, for 128 at a time. Whoever was not among
// the busy would wait for that. So now and then the busy wait in a round: when nobody is ready any more the scheduler asks the network,
// which gives it the newcomers, 128 at a time, and behind all who are there already the byte in a pipe that ends the round.
type rounds struct {
	clock func() time.Time
	alone bool // there is one processor: who has answered steps back in any case, so that the next request is there when it is read

	mu      sync.Mutex
	gaveWay int  // times that somebody gave way since the last round
	open    bool // a round is on; the byte is in the pipe
	ended   bool
	begun   time.Time     // the round that is on
	over    chan struct{} // closed at the end of the round
	number  atomic.Uint64 // changes under mu
	room    atomic.Int32  // how many may have a seat; changes under mu

	in, out *os.File
	done    chan struct{}
}

// startRounds begins the goroutine that ends rounds; end waits for it.
func startRounds(clock func() time.Time) (*rounds, error) {
	in, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	r := &rounds{clock: clock, alone: runtime.GOMAXPROCS(0) == 1, in: in, out: out, over: make(chan struct{}), done: make(chan struct{})}
	r.room.Store(seatsMax)
	go r.run()
	return r, nil
}

// giveWay lets others go first: on one processor those who are ready, and once in each so many times the network's newcomers too; 0 is
// never.
func (r *rounds) giveWay(each int) {
	if (each == 0 || !r.wait(each)) && r.alone {
		runtime.Gosched()
	}
}

// wait waits for the end of the round that is on, or is time for; false: there is none.
func (r *rounds) wait(each int) bool {
	r.mu.Lock()
	if r.gaveWay++; !r.open && !r.ended && r.gaveWay >= each {
		_, err := r.out.Write([]byte{0})
		r.open, r.begun = err == nil, r.clock()
	}
	open, over := r.open && !r.ended, r.over
	r.mu.Unlock()
	if open {
		<-over
	}
	return open
}

// run ends each round when the network is asked.
func (r *rounds) run() {
	defer close(r.done)
	one := make([]byte, 1)
	for {
		_, err := r.in.Read(one)
		r.mu.Lock()
		room := r.room.Load()
		switch took := r.clock().Sub(r.begun); {
		case took > roundLong && r.open:
			r.room.Store(max(seatsMin, room/2))
		case took < roundShort && r.open:
			r.room.Store(min(seatsMax, room+room/4))
		}
		r.open, r.gaveWay, r.ended = false, 0, err != nil
		r.number.Add(1)
		close(r.over)
		r.over = make(chan struct{})
		r.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// end lets everybody go who waits.
func (r *rounds) end() {
	_ = r.out.Close() // nothing is lost with a pipe
	<-r.done
	_ = r.in.Close()
}

// takeTurns are the rounds of all listeners, nil where there can't be any.
func (w *Overload) takeTurns(log *slog.Logger) *rounds {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.turns != nil || w.ended {
		return w.turns
	}
	turns, err := startRounds(w.clock)
	if err != nil {
		log.Warn("newcomers may wait 20 ms for their turn while the node is busy", "cause", err.Error())
		return nil
	}
	w.turns, w.seats.rounds = turns, turns
	return turns
}
