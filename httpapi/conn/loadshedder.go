package conn

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Sampling.
const (
	// queueAgeTarget is the queue age from which a request counts as late. The queue age is the time for which a
	// request lay unread in its socket.
	queueAgeTarget = 10 * time.Millisecond
	// One in sampleEvery requests of a connection is sampled: its queue age is measured. Not every request is sampled,
	// because asking the kernel for the queue age is a system call.
	sampleEvery = 16
	// windowMin is the shortest duration of a window, in which late samples are counted.
	windowMin = 25 * time.Millisecond
	// windowMax is the duration from which a window counts as quiet, which means not late. A window becomes so long if the
	// process was paused or if there were few requests.
	windowMax = 8 * windowMin
	// lateSamplesMin is the least number of late samples in a late window. A few samples can also be late because of a
	// pause of the process.
	lateSamplesMin = 8
	// lateWindowsMin is the number of consecutive late windows after which overload begins.
	lateWindowsMin = 2
	// quietWindowsMin is the number of consecutive quiet windows after which overload and watching end (see LoadShedder).
	quietWindowsMin = 40
)

// Shedding, which means rejecting requests under overload.
const (
	// answersPerShed limits shedding to one request in so many, because rejecting a request costs nearly as much as
	// answering it.
	answersPerShed = 64
	// shedsHalfIdle is the number of requests that may be shed in a window when half of the admission slots (the rights to
	// be served during overload) are unused.
	shedsHalfIdle = 64
	// idleGrace is added to the maximum queue age of each priority (Priority.queueAgeMax) when half of the admission slots
	// are unused.
	idleGrace = 100 * time.Millisecond
	// recheckEvery is the interval between calls of recheck while requests wait.
	recheckEvery = 2 * time.Second
	// queueTimeMax is the queue age from which recheck sheds a request during overload.
	queueTimeMax = 30 * time.Second
	// shedAtOnceMax is the number of requests that one call of recheck may shed.
	shedAtOnceMax = 64
)

// LoadShedder sheds requests by their queue age, see doc.go. It has three states. Normally it only samples requests.
// After a late sample it is watching: it counts late samples in windows. After lateWindowsMin late windows it is
// overloaded: each request needs an admission slot.
type LoadShedder struct {
	clock        func() time.Time
	writeTimeout time.Duration // write timeout of the server

	watching   atomic.Bool // also set during overload
	overloaded atomic.Bool

	mu           sync.Mutex
	windowStart  time.Time // start of the current window
	onTime, late int       // samples of the current window; during overload, a request is late if it waited for a slot
	lateWindows  int       // number of consecutive late windows just before the current one
	quietWindows int       // number of consecutive quiet windows just before the current one
	lastRefill   time.Time // when refill was last called
	slots        admissionSlots
	queue        requestQueue
	recheckTimer *time.Timer       // nil while no request waits
	ended        bool              // End was called: no request may wait
	rounds       *schedulingRounds // make busy connections yield to new requests; nil before Listen and after End
}

// NewLoadShedder returns a LoadShedder for a server with the given write timeout.
func NewLoadShedder(clock func() time.Time, writeTimeout time.Duration) *LoadShedder {
	return &LoadShedder{clock: clock, writeTimeout: writeTimeout}
}

// End rejects all waiting requests. After End, requests that would have to wait are rejected at once.
func (w *LoadShedder) End() {
	w.mu.Lock()
	rounds := w.rounds
	w.ended, w.rounds, w.slots.rounds = true, nil, nil
	w.shed(w.clock(), func(Priority) time.Duration { return math.MinInt64 }, math.MaxInt)
	if w.recheckTimer != nil {
		w.recheckTimer.Stop()
		w.recheckTimer = nil
	}
	w.mu.Unlock()
	if rounds != nil {
		rounds.close()
	}
}

// samples reports whether admit must be called for a request. request is Conn.sample, which counts the requests of the
// connection.
func (w *LoadShedder) samples(request uint32) bool {
	return request%sampleEvery == 0 || w.overloaded.Load()
}

// yieldsPerRound returns the number of responses after which a scheduling round begins: busy connections then wait, so
// that new requests run (see schedulingRounds). 0 means no rounds.
func (w *LoadShedder) yieldsPerRound() int {
	switch {
	case w == nil || !w.watching.Load():
		return 0
	case w.overloaded.Load():
		return 1
	}
	return yieldsPerRoundWatching
}

// admit reports whether to serve a sampled request. During overload it may wait until the request gets an admission
// slot or is shed.
func (w *LoadShedder) admit(c *Conn, p Priority) bool {
	switch {
	case p == Health:
		return true
	case w.overloaded.Load():
		return w.admitOverloaded(c, p)
	}
	age := c.queueAge()
	if age < queueAgeTarget && !w.watching.Load() {
		return true
	}
	w.mu.Lock()
	w.record(w.clock(), age >= queueAgeTarget)
	w.mu.Unlock()
	return true
}

// admitOverloaded does the work of admit during overload, when each request needs a slot.
func (w *LoadShedder) admitOverloaded(c *Conn, p Priority) bool {
	now := w.clock()
	w.mu.Lock()
	if !w.overloaded.Load() { // overload ended before the lock was taken
		w.mu.Unlock()
		return true
	}
	if w.holdsSlot(c, p, now) {
		c.slot.priority = p
		w.slots.markActive(c, now)
		w.record(now, false)
		w.mu.Unlock()
		return true
	}
	w.passSlot(c, now)
	if w.ended {
		w.mu.Unlock()
		return false
	}
	request := c.queueEntry(p, now)
	w.enqueue(request)
	w.record(now, true)
	w.mu.Unlock()
	return <-request.admitted
}

// holdsSlot reports whether a request can be served at once. If its connection has no slot, holdsSlot tries to get one.
// A connection must give up its slot if the number of slots has fallen, or if a request of a higher priority waits.
// After slotRequestsMax requests it must give up its slot if any request waits.
func (w *LoadShedder) holdsSlot(c *Conn, p Priority, now time.Time) bool {
	if !c.slot.held {
		return w.slots.acquire(c, p, now)
	}
	c.slot.served++
	mustShare := c.slot.served >= slotRequestsMax && w.queue.hasHigherPriority(PriorityCount, now)
	return !mustShare && len(w.slots.holders) <= w.slots.capacity() && !w.queue.hasHigherPriority(p, now)
}

// releaseIdle passes on the slot of a connection that has no next request yet or was closed.
func (w *LoadShedder) releaseIdle(c *Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.passSlot(c, w.clock())
}

// passSlot takes the slot of a connection, if it has one. It gives the slot to the next waiting request, unless the
// number of slots has fallen meanwhile.
func (w *LoadShedder) passSlot(c *Conn, now time.Time) {
	if !c.slot.held {
		return
	}
	w.slots.release(c)
	if w.slots.full() {
		return
	}
	if next := w.queue.popNewest(now); next != nil {
		w.slots.acquire(next.conn, next.priority, now)
		next.admitted <- true
	}
}

// refill gives unused slots, and the slots of connections that do not use them (admissionSlots.stalled), to waiting
// requests. A request gets a slot only if its queue age is below the maximum of its priority (queueAgeMax) plus grace.
func (w *LoadShedder) refill(now time.Time, grace time.Duration) {
	w.lastRefill = now
	asOf := now.Add(-grace)
	for next := w.queue.popNewest(asOf); next != nil; next = w.queue.popNewest(asOf) {
		if !w.slots.acquire(next.conn, next.priority, now) {
			w.queue.add(next)
			return
		}
		next.admitted <- true
	}
}

// record counts a sample. During overload every request is a sample. If the current window is over, record ends it and
// begins the next one.
func (w *LoadShedder) record(now time.Time, late bool) {
	if !w.watching.Load() {
		w.watching.Store(true)
		w.windowStart, w.onTime, w.late, w.lateWindows, w.quietWindows = now, 0, 0, 0, 0
	}
	if w.overloaded.Load() && now.Sub(w.lastRefill) >= refillEvery {
		w.refill(now, 0)
	}
	switch elapsed := now.Sub(w.windowStart); {
	case elapsed < windowMin:
	case w.overloaded.Load():
		w.endOverloadedWindow(now)
		w.windowStart, w.onTime, w.late = now, 0, 0
	case w.late >= lateSamplesMin, w.late+w.onTime >= 2*lateSamplesMin, elapsed >= windowMax:
		w.endWindow(elapsed < windowMax && w.late >= lateSamplesMin && w.late > w.onTime)
		w.windowStart, w.onTime, w.late = now, 0, 0
	}
	if late {
		w.late++
	} else {
		w.onTime++
	}
}

// endWindow ends a window while there is no overload. It decides whether overload begins or watching ends.
func (w *LoadShedder) endWindow(mostlyLate bool) {
	if mostlyLate {
		w.lateWindows, w.quietWindows = w.lateWindows+1, 0
	} else {
		w.lateWindows, w.quietWindows = 0, w.quietWindows+1
	}
	switch {
	case w.lateWindows >= lateWindowsMin:
		w.overloaded.Store(true)
		w.quietWindows = 0
	case w.quietWindows >= quietWindowsMin:
		w.watching.Store(false)
	}
}

// endOverloadedWindow ends a window during overload, and sheds some of the requests that have waited too long.
func (w *LoadShedder) endOverloadedWindow(now time.Time) {
	limit, maxAge := 1+(w.onTime+w.late)/answersPerShed, Priority.queueAgeMax
	if w.slots.halfStalled(now) { // the process was paused, so serving late requests is better than rejecting them
		w.refill(now, idleGrace)
		limit, maxAge = shedsHalfIdle, func(p Priority) time.Duration { return p.queueAgeMax() + idleGrace }
	}
	if w.quietWindows++; w.late > 0 || !w.queue.empty() {
		w.quietWindows = 0
	}
	w.shed(now, maxAge, limit)
	if w.quietWindows >= quietWindowsMin {
		w.endOverload()
	}
}

// endOverload frees all slots, which requests no longer need.
func (w *LoadShedder) endOverload() {
	w.overloaded.Store(false)
	w.watching.Store(false)
	w.slots.clear()
	w.quietWindows, w.lateWindows = 0, 0
}

// enqueue adds a request to the queue. The channel request.admitted gets the decision.
func (w *LoadShedder) enqueue(request *queuedRequest) {
	w.queue.add(request)
	if w.recheckTimer == nil {
		w.recheckTimer = time.AfterFunc(recheckEvery, w.recheck)
	}
}

// recheck is called regularly while requests wait, because record does not run when no new requests arrive. It ends
// overload if no request has arrived for a while. During overload it sheds requests older than queueTimeMax. After
// overload it sheds all requests that still wait. It sheds at most shedAtOnceMax at a time, so that other goroutines
// run in between.
func (w *LoadShedder) recheck() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, maxAge, interval := w.clock(), queueTimeMax, recheckEvery
	if w.overloaded.Load() && now.Sub(w.windowStart) > quietWindowsMin*windowMin {
		w.endOverload()
	}
	if !w.overloaded.Load() {
		maxAge, interval = 0, windowMin
	}
	w.shed(now, func(Priority) time.Duration { return maxAge }, shedAtOnceMax)
	if w.recheckTimer = nil; !w.ended && !w.queue.empty() {
		w.recheckTimer = time.AfterFunc(interval, w.recheck)
	}
}

// shed rejects waiting requests whose queue age is at least the maxAge of their priority, up to limit requests.
func (w *LoadShedder) shed(now time.Time, maxAge func(Priority) time.Duration, limit int) {
	for range limit {
		request := w.queue.popExpired(now, maxAge)
		if request == nil {
			return
		}
		request.admitted <- false
	}
}
