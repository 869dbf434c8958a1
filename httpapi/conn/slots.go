package conn

import (
	"slices"
	"time"
)

// Priority is the priority class of a request. Under overload, higher priorities are served first.
type Priority uint8

// The priorities, the highest first.
const (
	Health          Priority = iota // health checks, which never wait
	Keyed                           // requests with an API key
	Anonymous                       // requests without an API key
	KeyedCostly                     // costly operations with an API key
	AnonymousCostly                 // costly operations without an API key
	PriorityCount                   // the number of priorities
)

// queueAgeMax returns the queue age (time unread in the socket and in the queue) from which a waiting request of a
// priority may be shed.
func (p Priority) queueAgeMax() time.Duration {
	const ms = time.Millisecond
	return [PriorityCount]time.Duration{50 * ms, 150 * ms, 100 * ms, 50 * ms, 50 * ms}[p]
}

const (
	// slotsMax is the largest number of connections that are served at a time during overload. With fewer, a processor
	// could run out of work while clients send their next requests. With more, the memory of the connections would not
	// stay in the processors' caches.
	slotsMax = 64
	// slotRequestsMax is the number of requests after which a connection must give its admission slot to another one if
	// requests wait. An admission slot is the right of a connection to be served.
	slotRequestsMax = 512
	// A slot is stalled if its connection has not begun a request for slotStallMax. With scheduling rounds (see
	// schedulingRounds), it is stalled after slotStallRounds rounds without a request, because every connection runs in
	// each round.
	slotStallMax    = 20 * time.Millisecond
	slotStallRounds = 3
	// refillEvery is the shortest time between two calls of LoadShedder.refill by LoadShedder.record. refill gives unused
	// slots to waiting requests.
	refillEvery = time.Millisecond
)

// admissionSlot is the admission slot of one connection, which it needs during overload to be served. The lock of
// LoadShedder guards it.
type admissionSlot struct {
	held       bool      // the connection has a slot; otherwise all fields are zero
	served     int       // requests served with this slot, without the first one
	priority   Priority  // of the last request
	lastActive time.Time // when the last request began
	lastRound  uint64    // number of the scheduling round at lastActive
}

// admissionSlots are the slots of all connections. The lock of LoadShedder guards them.
type admissionSlots struct {
	holders   []*Conn           // the connections that have a slot
	clockHand int               // index in holders at which evict stopped, as in the page replacement algorithm CLOCK
	rounds    *schedulingRounds // nil: no scheduling rounds
}

// markActive is called when a connection with a slot begins a request.
func (s *admissionSlots) markActive(c *Conn, now time.Time) {
	c.slot.lastActive = now
	if s.rounds != nil {
		c.slot.lastRound = s.rounds.number.Load()
	}
}

// stalled reports whether a connection does not use its slot. For example, its request waits for a disk, or its client
// does not read the response.
func (s *admissionSlots) stalled(c *Conn, now time.Time) bool {
	if s.rounds != nil {
		return s.rounds.number.Load()-c.slot.lastRound >= slotStallRounds
	}
	return now.Sub(c.slot.lastActive) > slotStallMax
}

// acquire gives a connection a slot, if one is free or can be taken from another connection (evict), and reports
// whether it did.
func (s *admissionSlots) acquire(c *Conn, p Priority, now time.Time) bool {
	if s.full() && !s.evict(p, now) {
		return false
	}
	c.slot = admissionSlot{held: true, priority: p}
	s.markActive(c, now)
	s.holders = append(s.holders, c)
	return true
}

// evict frees the slot of a connection that is stalled or whose priority is lower than p. It reports whether there was
// such a connection.
func (s *admissionSlots) evict(p Priority, now time.Time) bool {
	for range s.holders {
		s.clockHand = (s.clockHand + 1) % len(s.holders)
		if other := s.holders[s.clockHand]; other.slot.priority > p || s.stalled(other, now) {
			s.release(other)
			return true
		}
	}
	return false
}

// halfStalled reports whether fewer than half of the slots are being used.
func (s *admissionSlots) halfStalled(now time.Time) bool {
	used := 0
	for _, c := range s.holders {
		if !s.stalled(c, now) {
			used++
		}
	}
	return used < s.capacity()/2
}

// capacity returns the number of slots. With scheduling rounds it depends on how long the rounds take.
func (s *admissionSlots) capacity() int {
	if s.rounds == nil {
		return slotsMax
	}
	return int(s.rounds.slotLimit.Load())
}

func (s *admissionSlots) full() bool { return len(s.holders) >= s.capacity() }

func (s *admissionSlots) release(c *Conn) {
	index := slices.Index(s.holders, c)
	s.holders = slices.Delete(s.holders, index, index+1)
	c.slot = admissionSlot{}
}

func (s *admissionSlots) clear() {
	for _, c := range s.holders {
		c.slot = admissionSlot{}
	}
	s.holders, s.clockHand = nil, 0
}

// queuedRequest is a request that waits for a slot.
type queuedRequest struct {
	conn      *Conn
	priority  Priority
	arrivedAt time.Time // when the request arrived at the socket
	admitted  chan bool // true: the request has a slot; false: it is rejected; buffered, so that sending does not block
}

// queueEntry returns a queuedRequest for the connection's current request. Each connection has one and reuses it, to
// spare the garbage collector under overload.
func (c *Conn) queueEntry(p Priority, now time.Time) *queuedRequest {
	if c.queued == nil {
		c.queued = &queuedRequest{conn: c, admitted: make(chan bool, 1)}
	}
	c.queued.priority, c.queued.arrivedAt = p, now.Add(-c.queueAge())
	return c.queued
}

// requestQueue holds the waiting requests of each priority, oldest first. The lock of LoadShedder guards it.
type requestQueue [PriorityCount][]*queuedRequest

func (q *requestQueue) add(request *queuedRequest) {
	q[request.priority] = append(q[request.priority], request)
}

// hasFresh reports whether the queue has a request of priority p with an age below queueAgeMax.
func (q *requestQueue) hasFresh(p Priority, now time.Time) bool {
	last := len(q[p]) - 1
	return last >= 0 && now.Sub(q[p][last].arrivedAt) < p.queueAgeMax()
}

// hasHigherPriority reports whether hasFresh is true for a priority higher than p. With p = PriorityCount it considers
// all priorities.
func (q *requestQueue) hasHigherPriority(p Priority, now time.Time) bool {
	for other := range p {
		if q.hasFresh(other, now) {
			return true
		}
	}
	return false
}

// popNewest removes and returns the request to serve next: the newest of the highest priority for which hasFresh is
// true. It returns nil if there is no such request.
func (q *requestQueue) popNewest(now time.Time) *queuedRequest {
	for p := range PriorityCount {
		if q.hasFresh(p, now) {
			last := len(q[p]) - 1
			newest := q[p][last]
			q[p] = slices.Delete(q[p], last, last+1)
			return newest
		}
	}
	return nil
}

// popExpired removes and returns a request whose age is at least the maxAge of its priority, or returns nil. It takes
// the oldest request of the highest priority, because its client may send the request again, and the newest requests
// are served first.
func (q *requestQueue) popExpired(now time.Time, maxAge func(Priority) time.Duration) *queuedRequest {
	for p := range PriorityCount {
		if len(q[p]) > 0 && now.Sub(q[p][0].arrivedAt) >= maxAge(p) {
			oldest := q[p][0]
			q[p][0], q[p] = nil, q[p][1:]
			return oldest
		}
	}
	return nil
}

func (q *requestQueue) empty() bool {
	return !slices.ContainsFunc(q[:], func(waiting []*queuedRequest) bool { return len(waiting) > 0 })
}
