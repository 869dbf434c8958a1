package conn

import (
	"slices"
	"time"
)

// Priority is the priority class of a request: which are served first when not all can be.
type Priority uint8

// The priorities, the highest first.
const (
	Health          Priority = iota // never waits
	Keyed                           // its caller is known
	Anonymous                       // all others
	KeyedCostly                     // what takes the most work
	AnonymousCostly                 // the same
	PriorityCount                   // how many there are
)

// queueAgeMax is how old a request of a priority may get before it is shed.
func (l Priority) queueAgeMax() time.Duration {
	const ms = time.Millisecond
	return [PriorityCount]time.Duration{50 * ms, 150 * ms, 100 * ms, 50 * ms, 50 * ms}[l]
}

const (
	// slotsMax is how many connections are served while slots are given out: enough that no processor runs out of work
	// while the clients send their next requests, and few enough that their memory stays in the processors' caches.
	slotsMax = 64
	// slotRequestsMax is how many requests a connection is served before another one that waits has its slot.
	slotRequestsMax = 512
	// slotStallMax is how long a request that waits for something else, such as a disk, may hold its slot. Where there
	// are rounds these count instead: each connection has a turn in each of them.
	slotStallMax    = 20 * time.Millisecond
	slotStallRounds = 3
	// refillEvery is how often slots of that kind are looked for.
	refillEvery = time.Millisecond
)

// admissionSlot is a connection's admission slot; the lock of LoadShedder guards it.
type admissionSlot struct {
	held       bool
	served     int
	priority   Priority
	lastActive time.Time // when its request began, or ended
	lastRound  uint64    // and in which round
}

// admissionSlots are the connections that are served. The lock of LoadShedder guards them.
type admissionSlots struct {
	holders   []*Conn
	clockHand int               // where the last slot was taken away
	rounds    *schedulingRounds // nil: there are none
}

// markActive notes that a connection begins with a request, or has ended it.
func (s *admissionSlots) markActive(c *Conn, now time.Time) {
	c.slot.lastActive = now
	if s.rounds != nil {
		c.slot.lastRound = s.rounds.number.Load()
	}
}

// stalled tells that a request waits for something else than its turn: a disk, or a client that does not take its
// answer.
func (s *admissionSlots) stalled(c *Conn, now time.Time) bool {
	if s.rounds != nil {
		return s.rounds.number.Load()-c.slot.lastRound >= slotStallRounds
	}
	return now.Sub(c.slot.lastActive) > slotStallMax
}

// acquire gives a connection a slot: a free one, or that of a stalled connection or of a lower priority.
func (s *admissionSlots) acquire(c *Conn, l Priority, now time.Time) bool {
	if s.full() && !s.evict(l, now) {
		return false
	}
	c.slot = admissionSlot{held: true, priority: l}
	s.markActive(c, now)
	s.holders = append(s.holders, c)
	return true
}

// evict frees a slot for a request of a priority, if one can be freed.
func (s *admissionSlots) evict(l Priority, now time.Time) bool {
	for range s.holders {
		s.clockHand = (s.clockHand + 1) % len(s.holders)
		if other := s.holders[s.clockHand]; other.slot.priority > l || s.stalled(other, now) {
			s.release(other)
			return true
		}
	}
	return false
}

// halfStalled tells that half of the slots are not used.
func (s *admissionSlots) halfStalled(now time.Time) bool {
	used := 0
	for _, c := range s.holders {
		if !s.stalled(c, now) {
			used++
		}
	}
	return used < s.capacity()/2
}

// capacity is how many there are: where there are rounds, as many as a round is short with.
func (s *admissionSlots) capacity() int {
	if s.rounds == nil {
		return slotsMax
	}
	return int(s.rounds.slotLimit.Load())
}

func (s *admissionSlots) full() bool { return len(s.holders) >= s.capacity() }

// release frees a connection's slot.
func (s *admissionSlots) release(c *Conn) {
	at := slices.Index(s.holders, c)
	s.holders = slices.Delete(s.holders, at, at+1)
	c.slot = admissionSlot{}
}

// clear frees all.
func (s *admissionSlots) clear() {
	for _, c := range s.holders {
		c.slot = admissionSlot{}
	}
	s.holders, s.clockHand = nil, 0
}

// queueEntry is the connection's only queuedRequest, made at first use: it has one request at a time, and under
// overload the garbage collector is busy enough.
type queuedRequest struct {
	conn      *Conn
	priority  Priority
	arrivedAt time.Time // when it came
	admitted  chan bool // true: it has a slot, false: it is refused; buffered, so that telling it does not wait
}

// queueEntry is the connection's own one, made when it waits for the first time: it has one request at a time, and
// under overload the garbage collector has enough to do.
func (c *Conn) queueEntry(l Priority, now time.Time) *queuedRequest {
	if c.queued == nil {
		c.queued = &queuedRequest{conn: c, admitted: make(chan bool, 1)}
	}
	c.queued.priority, c.queued.arrivedAt = l, now.Add(-c.queueAge())
	return c.queued
}

// requestQueue are the requests without a slot, by priority, in order of arrival. The lock of LoadShedder guards them.
type requestQueue [PriorityCount][]*queuedRequest

func (w *requestQueue) add(one *queuedRequest) { w[one.priority] = append(w[one.priority], one) }

// hasFresh tells whether the newest request of a priority is below its queueAgeMax.
func (w *requestQueue) hasFresh(l Priority, now time.Time) bool {
	last := len(w[l]) - 1
	return last >= 0 && now.Sub(w[l][last].arrivedAt) < l.queueAgeMax()
}

// hasHigherPriority tells whether such a request of a higher priority waits; PriorityCount stands for any.
func (w *requestQueue) hasHigherPriority(l Priority, now time.Time) bool {
	for other := range l {
		if w.hasFresh(other, now) {
			return true
		}
	}
	return false
}

// popNewest takes out the request that is next: the newest of the highest priority.
func (w *requestQueue) popNewest(now time.Time) *queuedRequest {
	for l := range PriorityCount {
		if w.hasFresh(l, now) {
			last := len(w[l]) - 1
			one := w[l][last]
			w[l] = slices.Delete(w[l], last, last+1)
			return one
		}
	}
	return nil
}

// popExpired takes out the oldest request of the highest priority that has waited so long: its client may ask again,
// and is served then.
func (w *requestQueue) popExpired(now time.Time, least func(Priority) time.Duration) *queuedRequest {
	for l := range PriorityCount {
		if len(w[l]) > 0 && now.Sub(w[l][0].arrivedAt) >= least(l) {
			one := w[l][0]
			w[l][0], w[l] = nil, w[l][1:]
			return one
		}
	}
	return nil
}

func (w *requestQueue) empty() bool {
	return !slices.ContainsFunc(w[:], func(lane []*queuedRequest) bool { return len(lane) > 0 })
}
