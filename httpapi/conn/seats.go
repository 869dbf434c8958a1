package conn

import "time"

const (
	// seatsMax is how many connections are served while seats are given out: enough that none of the machine's processors runs out of
	// work while the callers send their next requests, and few enough that what belongs to them stays in the processors' caches.
	seatsMax = 64
	// seatTurns is how many requests a connection is served before another one has its seat that waits.
	seatTurns = 512
	// seatSlow is how long a request may hold a seat that waits for something else than its turn, such as a disk, before somebody else
	// takes it. Where there are rounds these count: in each of them everybody had a turn.
	seatSlow       = 20 * time.Millisecond
	seatSlowRounds = 3
	// fillEach is how often it is looked whether there are such seats.
	fillEach = time.Millisecond
)

// seat is a connection's part in seats; the watch's lock guards it.
type seat struct {
	held    bool
	at      int // where in seats
	turns   int
	lane    Lane
	touched time.Time // when its request began, or ended
	round   uint64    // and in which round
}

// seats are the connections that are served. The watch's lock guards them.
type seats struct {
	held   []*Conn
	hand   int     // where the last one was taken from somebody
	rounds *rounds // nil: there are none
}

// touch notes that a connection begins with a request, or has ended it.
func (s *seats) touch(c *Conn, now time.Time) {
	c.seat.touched = now
	if s.rounds != nil {
		c.seat.round = s.rounds.number.Load()
	}
}

// unused tells that a seat's request waits for something else than its turn: a disk, or a client that does not take its answer.
func (s *seats) unused(c *Conn, now time.Time) bool {
	if s.rounds != nil {
		return s.rounds.number.Load()-c.seat.round >= seatSlowRounds
	}
	return now.Sub(c.seat.touched) > seatSlow
}

// take gives a connection a seat: a free one, or that of somebody who does not use it, or whose lane is worse.
func (s *seats) take(c *Conn, l Lane, now time.Time) bool {
	if s.full() {
		victim := s.victim(l, now)
		if victim == nil {
			return false
		}
		s.leave(victim)
	}
	c.seat = seat{held: true, at: len(s.held), lane: l}
	s.touch(c, now)
	s.held = append(s.held, c)
	return true
}

// victim is who has to leave for a request of a lane, nil for nobody.
func (s *seats) victim(l Lane, now time.Time) *Conn {
	for range s.held {
		s.hand = (s.hand + 1) % len(s.held)
		other := s.held[s.hand]
		if other.seat.lane > l || s.unused(other, now) {
			return other
		}
	}
	return nil
}

// idle tells that half of the seats are not used.
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

// leave frees a connection's seat.
func (s *seats) leave(c *Conn) {
	last := len(s.held) - 1
	s.held[c.seat.at] = s.held[last]
	s.held[c.seat.at].seat.at = c.seat.at
	s.held[last] = nil
	s.held = s.held[:last]
	c.seat = seat{}
}

// clear frees all.
func (s *seats) clear() {
	for _, c := range s.held {
		c.seat = seat{}
	}
	s.held, s.hand = nil, 0
}

// waiter is a request that waits for a seat.
type waiter struct {
	conn  *Conn
	lane  Lane
	since time.Time // when it came
	turn  chan bool // true: it has a seat, false: it is to be refused; one place, so that nobody waits for its reader

	older, newer *waiter // in its queue
}

// waiter is the connection's own one, made when it waits for the first time: it has one request at a time, and under overload what each
// would leave behind is what the collector of garbage would be busy with then.
func (c *Conn) waiter(l Lane, now time.Time) *waiter {
	if c.place == nil {
		c.place = &waiter{conn: c, turn: make(chan bool, 1)}
	}
	c.place.lane, c.place.since = l, now.Add(-c.waited())
	return c.place
}

// queue is the requests of a lane.
type queue struct{ oldest, newest *waiter }

// waiting are the requests without a seat, by lane. The watch's lock guards them.
type waiting [Lanes]queue

func (w *waiting) add(one *waiter) {
	q := &w[one.lane]
	one.older, one.newer = q.newest, nil
	if q.newest == nil {
		q.oldest = one
	} else {
		q.newest.newer = one
	}
	q.newest = one
}

// remove takes a request out, which is to be told then what becomes of it.
func (w *waiting) remove(one *waiter) {
	q := &w[one.lane]
	if one.older == nil {
		q.oldest = one.newer
	} else {
		one.older.newer = one.newer
	}
	if one.newer == nil {
		q.newest = one.older
	} else {
		one.newer.older = one.older
	}
	one.older, one.newer = nil, nil
}

// newest is the last request of a lane that still has patience.
func (w *waiting) newest(l Lane, now time.Time) *waiter {
	if one := w[l].newest; one != nil && now.Sub(one.since) < l.patience() {
		return one
	}
	return nil
}

// better tells whether somebody of a better lane waits who has patience.
func (w *waiting) better(l Lane, now time.Time) bool {
	for other := range l {
		if w.newest(other, now) != nil {
			return true
		}
	}
	return false
}

// any tells whether anybody waits who has patience.
func (w *waiting) any(now time.Time) bool { return w.better(Lanes, now) }

// youngest takes out who is next.
func (w *waiting) youngest(now time.Time) *waiter {
	for l := range Lanes {
		if one := w.newest(l, now); one != nil {
			w.remove(one)
			return one
		}
	}
	return nil
}

// past takes out the oldest request of the best lane in which one has waited so long: its caller may ask again, and is served then.
func (w *waiting) past(now time.Time, least func(Lane) time.Duration) *waiter {
	for l := range Lanes {
		if one := w[l].oldest; one != nil && now.Sub(one.since) >= least(l) {
			w.remove(one)
			return one
		}
	}
	return nil
}

// empty tells that nobody waits.
func (w *waiting) empty() bool {
	for l := range Lanes {
		if w[l].oldest != nil {
			return false
		}
	}
	return true
}
