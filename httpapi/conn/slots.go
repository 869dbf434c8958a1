package conn

import (
	"slices"
	"time"
)

// Priority is the priority class of a request. Under overload, higher priorities are served first.
type Priority uint8

// The priorities, the highest first.
const (
	Health          Priority = iota // never waits
	Keyed                           // with an API key
	Anonymous                       // without one
	KeyedCostly                     // with a key, an operation that takes much work
	AnonymousCostly                 // the same without a key
	PriorityCount                   // the number of priorities
)

// queueAgeMax is the age from which a waiting request of a priority may be shed.
func (p Priority) queueAgeMax() time.Duration {
	const ms = time.Millisecond
	return [PriorityCount]time.Duration{50 * ms, 150 * ms, 100 * ms, 50 * ms, 50 * ms}[p]
}

const (
	// slotsMax is the largest number of connections that are served at a time while limiting: enough that no processor
	// runs out of work while the clients send their next requests, and few enough that their memory stays in the
	// processors' caches.
	slotsMax = 64
	// slotRequestsMax is the number of requests after which a connection must pass its slot on if others wait.
	slotRequestsMax = 512
	// slotStallMax is the time after which the slot of a request that waits for something else, such as a disk, may be
	// taken. With scheduling rounds, in each of which every connection runs, it is slotStallRounds rounds instead.
	slotStallMax    = 20 * time.Millisecond
	slotStallRounds = 3
	// refillEvery is the shortest time between two searches for unused and stalled slots.
	refillEvery = time.Millisecond
)

// admissionSlot is a connection's admission slot; the lock of LoadShedder guards it.
type admissionSlot struct {
	held       bool
	served     int // requests served in it
	priority   Priority
	lastActive time.Time // when the connection's last request began
	lastRound  uint64    // the scheduling round at lastActive
}

// admissionSlots are the slots of all connections. The lock of LoadShedder guards them.
type admissionSlots struct {
	holders   []*Conn
	clockHand int               // index in holders of the last evicted slot, as in the CLOCK algorithm
	rounds    *schedulingRounds // nil: there are none
}

// markActive notes that a connection begins a request.
func (s *admissionSlots) markActive(c *Conn, now time.Time) {
	c.slot.lastActive = now
	if s.rounds != nil {
		c.slot.lastRound = s.rounds.number.Load()
	}
}

// stalled reports whether a slot is not being used: its request waits for a disk, or its client does not read the
// answer.
func (s *admissionSlots) stalled(c *Conn, now time.Time) bool {
	if s.rounds != nil {
		return s.rounds.number.Load()-c.slot.lastRound >= slotStallRounds
	}
	return now.Sub(c.slot.lastActive) > slotStallMax
}

// acquire gives a connection a free slot, or evicts a stalled connection or one of a lower priority for it. It reports
// whether the connection has a slot.
func (s *admissionSlots) acquire(c *Conn, p Priority, now time.Time) bool {
	if s.full() && !s.evict(p, now) {
		return false
	}
	c.slot = admissionSlot{held: true, priority: p}
	s.markActive(c, now)
	s.holders = append(s.holders, c)
	return true
}

// evict takes the slot of a stalled connection or of one with a lower priority than p, and reports whether there was
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

// capacity returns the number of slots. With scheduling rounds, it is as many as keep the rounds short.
func (s *admissionSlots) capacity() int {
	if s.rounds == nil {
		return slotsMax
	}
	return int(s.rounds.slotLimit.Load())
}

func (s *admissionSlots) full() bool { return len(s.holders) >= s.capacity() }

// release frees a connection's slot.
func (s *admissionSlots) release(c *Conn) {
	index := slices.Index(s.holders, c)
	s.holders = slices.Delete(s.holders, index, index+1)
	c.slot = admissionSlot{}
}

// clear frees all slots.
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
	arrivedAt time.Time
	admitted  chan bool // true: the request has a slot; false: it is refused; buffered, so that sending does not block
}

// queueEntry returns the connection's queuedRequest for its present request. It is allocated once for each connection,
// because under overload the garbage collector is busy enough.
func (c *Conn) queueEntry(p Priority, now time.Time) *queuedRequest {
	if c.queued == nil {
		c.queued = &queuedRequest{conn: c, admitted: make(chan bool, 1)}
	}
	c.queued.priority, c.queued.arrivedAt = p, now.Add(-c.queueAge())
	return c.queued
}

// requestQueue holds the waiting requests by priority, in order of arrival. The lock of LoadShedder guards it.
type requestQueue [PriorityCount][]*queuedRequest

func (q *requestQueue) add(request *queuedRequest) {
	q[request.priority] = append(q[request.priority], request)
}

// hasFresh reports whether a request of a priority waits whose age is below its queueAgeMax.
func (q *requestQueue) hasFresh(p Priority, now time.Time) bool {
	last := len(q[p]) - 1
	return last >= 0 && now.Sub(q[p][last].arrivedAt) < p.queueAgeMax()
}

// hasHigherPriority reports whether such a request of a higher priority than p waits; with PriorityCount, of any.
func (q *requestQueue) hasHigherPriority(p Priority, now time.Time) bool {
	for other := range p {
		if q.hasFresh(other, now) {
			return true
		}
	}
	return false
}

// popNewest removes and returns the request to serve next: the newest of the highest priority whose age is below its
// queueAgeMax. It returns nil if there is no such request.
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

// popExpired removes and returns the oldest request of the highest priority that has a request of maxAge or older, or
// returns nil. The highest comes first because its client may retry, and is then likely to be served.
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
