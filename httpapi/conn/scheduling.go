package conn

import (
	"log/slog"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// yieldsPerRoundWatching is the number of responses for each scheduling round (see schedulingRounds) while LoadShedder
	// is watching: there was a late request, but overload has not begun. During overload a round begins after each
	// response.
	yieldsPerRoundWatching = 128
	// yieldsCounted is the number of responses that a connection reports at a time, so that it takes the lock seldom.
	yieldsCounted = 8
)

// The length of a scheduling round changes the number of admission slots, which is the number of connections that are
// served at a time during overload. Rounds are long while garbage is collected or other processes use the processors.
// New requests wait for the end of a round, and fewer slots make rounds shorter.
const (
	roundLong  = 15 * time.Millisecond // a longer round halves the number of slots
	roundShort = roundLong / 2         // a shorter round raises the number by a quarter, up to slotsMax
	slotsMin   = 8                     // the least number of slots
)

// schedulingRounds make busy connections yield to new requests.
//
// Gosched is not enough for this. While any goroutine is ready to run, the scheduler itself does not poll the network.
// Only its monitor thread polls, every 10 to 20 ms, for 128 connections at a time. So now and then all busy connections
// wait until a scheduling round ends. The round begins when a byte is written to a pipe. As no goroutine is ready, the
// scheduler now polls the network, and runs the requests that arrived before the byte. The round ends when the byte is
// read.
type schedulingRounds struct {
	clock           func() time.Time
	singleProcessor bool // if so, connections yield after each response, so that their next requests arrive

	mu        sync.Mutex
	yields    int           // responses since the last round
	active    atomic.Bool   // a round has begun, and its byte is in the pipe; written under mu
	ended     bool          // no more rounds: the pipe failed or was closed
	startedAt time.Time     // start of the last round
	finished  chan struct{} // closed at the end of the current round, or of the next one if none is running
	number    atomic.Uint64 // number of the current round, or of the next one if none is running; written under mu
	slotLimit atomic.Int32  // number of admission slots; written under mu

	pipeReader, pipeWriter *os.File
	done                   chan struct{}
}

// startRounds opens the pipe and starts the goroutine that ends rounds. close waits until that goroutine returns.
// startRounds fails if no pipe can be opened.
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

// yield lets other goroutines run after a response. perRound is the number of responses for each round, and 0 means no
// rounds. If there is no round, yield calls Gosched on a single processor. unreported is the connection's number of
// responses that are not counted in yields yet.
func (r *schedulingRounds) yield(perRound int, unreported *int) {
	if (perRound == 0 || !r.joinRound(perRound, unreported)) && r.singleProcessor {
		runtime.Gosched()
	}
}

// joinRound begins a round if there have been perRound responses since the previous round. It waits for the end of the
// current round, and reports whether there was one.
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

// run ends a round each time it reads the byte from the pipe.
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

// close ends the current round and the goroutine of startRounds.
func (r *schedulingRounds) close() {
	_ = r.pipeWriter.Close() // no data can be lost
	<-r.done
	_ = r.pipeReader.Close()
}

// schedulingRounds returns the scheduling rounds, which all listeners share. The first call starts them. It returns nil
// without a LoadShedder, after End, or if no pipe can be opened.
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
		log.Warn("new requests may wait 20 ms while the node is busy: no pipe for scheduling rounds", "cause", err.Error())
		return nil
	}
	w.rounds, w.slots.rounds = rounds, rounds
	return rounds
}
