package conn

import (
	"slices"
	"time"
)

// Lane is the priority class of a request: whose turn comes first when not all can be served.
type Lane uint8

// The lanes, the best first.
const (
	Health          Lane = iota // never waits
	Keyed                       // its caller is known
	Anonymous                   // all others
	KeyedCostly                 // what takes the most work
	AnonymousCostly             // the same
	Lanes                       // how many there are
)

// patience is how old a request of a lane may get before it is not worked on any more.
func (l Lane) patience() time.Duration {
	const ms = time.Millisecond
	return [Lanes]time.Duration{50 * ms, 150 * ms, 100 * ms, 50 * ms, 50 * ms}[l]
}

const (
	// seatsMax is how many connections are served while slots are given out: enough that none of the machine's processors runs out of
	// work while the callers send their next requests, and few enough that what belongs to them stays in the processors' caches.
	seatsMax = 64
	// seatTurns is how many requests a connection is served before another one that waits has its slot.
	seatTurns = 512
	// seatSlow is how long a request may hold a slot that waits for something else than its turn, such as a disk, before it is taken
	// away. Where there are rounds these count: in each of them every connection had a turn.
	seatSlow       = 20 * time.Millisecond
	seatSlowRounds = 3
	// fillEach is how often slots of that kind are looked for.
	fillEach = time.Millisecond
)

// seat is a connection's admission slot; the lock of Overload guards it.
type seat struct {
	held    bool
	turns   int
	lane    Lane
	touched time.Time // when its request began, or ended
	round   uint64    // and in which round
}

// seats are the connections that are served. The lock of Overload guards them.
type seats struct {
	held   []*Conn
	hand   int     // where the last slot was taken away
	rounds *rounds // nil: there are none
}

// touch notes that a connection begins with a request, or has ended it.
func (s *seats) touch(c *Conn, now time.Time) {
	c.seat.touched = now
	if s.rounds != nil {
		c.seat.round = s.rounds.number.Load()
	}
}

// unused tells that a request waits for something else than its turn: a disk, or a client that does not take its answer.
func (s *seats) unused(c *Conn, now time.Time) bool {
	if s.rounds != nil {
		return s.rounds.number.Load()-c.seat.round >= seatSlowRounds
	}
	return now.Sub(c.seat.touched) > seatSlow
}

// take gives a connection a slot: a free one, or that of a connection that does not use it, or whose lane is worse.
func (s *seats) take(c *Conn, l Lane, now time.Time) bool {
	if s.full() && !s.evict(l, now) {
		return false
	}
	c.seat = seat{held: true, lane: l}
	s.touch(c, now)
	s.held = append(s.held, c)
	return true
}

// evict frees a slot for a request of a lane, if there is one to be freed.
func (s *seats) evict(l Lane, now time.Time) bool {
	for range s.held {
		s.hand = (s.hand + 1) % len(s.held)
		if other := s.held[s.hand]; other.seat.lane > l || s.unused(other, now) {
			s.leave(other)
			return true
		}
	}
	return false
}

// idle tells that half of the slots are not used.
func (s *seats) idle(now time.Time) bool {
	used := 0
	for _, c := range s.held {
		if !s.unused(c, now) {
			used++
		}
	}
	return used < s.most()/2
}

// most is how many there are: where there are rounds, as many as a round is short with.
func (s *seats) most() int {
	if s.rounds == nil {
		return seatsMax
	}
	return int(s.rounds.room.Load())
}

func (s *seats) full() bool { return len(s.held) >= s.most() }

// leave frees a connection's slot.
func (s *seats) leave(c *Conn) {
	at := slices.Index(s.held, c)
	s.held = slices.Delete(s.held, at, at+1)
	c.seat = seat{}
}

// clear frees all.
func (s *seats) clear() {
	for _, c := range s.held {
		c.seat = seat{}
	}
	s.held, s.hand = nil, 0
}

// waiter is a request that waits for a slot.
type waiter struct {
	conn  *Conn
	lane  Lane
	since time.Time // when it came
	turn  chan bool // true: it has a slot, false: it is refused; buffered, so that telling it does not wait
}

// waiter is the connection's own one, made when it waits for the first time: it has one request at a time, and under overload the garbage
// collector has enough to do.
func (c *Conn) waiter(l Lane, now time.Time) *waiter {
	if c.place == nil {
		c.place = &waiter{conn: c, turn: make(chan bool, 1)}
	}
	c.place.lane, c.place.since = l, now.Add(-c.waited())
	return c.place
}

// waiting are the requests without a slot, by lane, in the order in which they came. The lock of Overload guards them.
type waiting [Lanes][]*waiter

func (w *waiting) add(one *waiter) { w[one.lane] = append(w[one.lane], one) }

// patient tells whether the newest request of a lane still has patience.
func (w *waiting) patient(l Lane, now time.Time) bool {
	last := len(w[l]) - 1
	return last >= 0 && now.Sub(w[l][last].since) < l.patience()
}

// better tells whether a request of a better lane waits that has patience; better than Lanes is any.
func (w *waiting) better(l Lane, now time.Time) bool {
	for other := range l {
		if w.patient(other, now) {
			return true
		}
	}
	return false
}

// youngest takes out the request that is next: the newest of the best lane.
func (w *waiting) youngest(now time.Time) *waiter {
	for l := range Lanes {
		if w.patient(l, now) {
			last := len(w[l]) - 1
			one := w[l][last]
			w[l] = slices.Delete(w[l], last, last+1)
			return one
		}
	}
	return nil
}

// past takes out the oldest request of the best lane in which one has waited so long: its caller may ask again, and is served then.
func (w *waiting) past(now time.Time, least func(Lane) time.Duration) *waiter {
	for l := range Lanes {
		if len(w[l]) > 0 && now.Sub(w[l][0].since) >= least(l) {
			one := w[l][0]
			w[l][0], w[l] = nil, w[l][1:]
			return one
		}
	}
	return nil
}

func (w *waiting) empty() bool {
	return !slices.ContainsFunc(w[:], func(lane []*waiter) bool { return len(lane) > 0 })
}
