package conn

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Sampling.
const (
	// queueAgeTarget is the queue age (time unread in the socket) from which a sampled request counts as late.
	queueAgeTarget = 10 * time.Millisecond
	// sampleEvery: one request in sampleEvery of a connection is sampled while slots are not limited, because asking
	// the kernel for the queue age is a system call.
	sampleEvery = 16
	// sampleWindow is the shortest time for which samples are counted before they are judged.
	sampleWindow = 25 * time.Millisecond
	// sampleGapMax is the length from which a window is ignored: the process was paused, or there were few requests.
	sampleGapMax = 8 * sampleWindow
	// lateSamplesMin is the number of late samples that a window must have to count as late: on a node with few
	// requests, one that was delayed by a pause does not mean overload.
	lateSamplesMin = 8
	// lateWindowsMin is the number of consecutive windows with mostly late samples that mean overload.
	lateWindowsMin = 2
	// quietWindowsMin is the number of consecutive windows without overload that end limiting, or watching.
	quietWindowsMin = 40
)

// Shedding.
const (
	// answersPerShed is the number of answers for each refusal during overload: a refusal costs nearly as much as an
	// answer.
	answersPerShed = 64
	// shedsWhenIdle is the largest number of refusals in a window in which half of the slots are idle.
	shedsWhenIdle = 64
	// idleGrace is added to the queueAgeMax of each priority while half of the slots are idle.
	idleGrace = 100 * time.Millisecond
	// recheckEvery is the interval at which waiting requests are checked while no new requests come (see recheck).
	// Those that have waited for queueTimeMax are refused, at most shedAtOnceMax at a time.
	recheckEvery  = 2 * time.Second
	queueTimeMax  = 30 * time.Second
	shedAtOnceMax = 64
)

// LoadShedder sheds load by queue age: the time for which requests lay unread in their sockets. It samples one request
// in sampleEvery of a connection. While the samples are on time it does nothing else; doc.go explains what it does when
// most are late.
type LoadShedder struct {
	clock        func() time.Time
	writeTimeout time.Duration // the server's

	watching atomic.Bool // there was a late sample recently: windows are counted
	limiting atomic.Bool // overload: requests need an admission slot

	mu                        sync.Mutex
	windowStart               time.Time // of the current window
	onTime, late              int       // samples of the current window; while limiting, requests that did not wait for a slot, and that did
	lateWindows, quietWindows int       // consecutive ones
	lastRefill                time.Time // see refill
	slots                     admissionSlots
	queue                     requestQueue
	recheckTimer              *time.Timer       // nil while no request waits
	ended                     bool              // End was called: requests no longer wait
	rounds                    *schedulingRounds // nil: not started, or ended
}

// NewLoadShedder returns a LoadShedder for the connections of a server with this write timeout.
func NewLoadShedder(clock func() time.Time, writeTimeout time.Duration) *LoadShedder {
	return &LoadShedder{clock: clock, writeTimeout: writeTimeout}
}

// End refuses all waiting requests, and from then on every request that would have to wait.
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

// samples reports whether admit must be called for a connection's next request.
func (w *LoadShedder) samples(request uint32) bool {
	return request%sampleEvery == 0 || w.limiting.Load()
}

// yieldsPerRound returns the number of answers after which a scheduling round begins; 0 means no rounds.
func (w *LoadShedder) yieldsPerRound() int {
	switch {
	case w == nil || !w.watching.Load():
		return 0
	case w.limiting.Load():
		return 1
	}
	return yieldsPerRoundWatching
}

// admit reports whether to serve a sampled request. While limiting, it may wait until the request gets a slot or is
// shed.
func (w *LoadShedder) admit(c *Conn, p Priority) bool {
	switch {
	case p == Health:
		return true
	case w.limiting.Load():
		return w.admitLimited(c, p)
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

// admitLimited is admit while limiting.
func (w *LoadShedder) admitLimited(c *Conn, p Priority) bool {
	now := w.clock()
	w.mu.Lock()
	if !w.limiting.Load() { // it ended before the lock was taken
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

// holdsSlot reports whether a request can be served at once. A connection without a slot tries to get one. It keeps its
// slot until it has used it slotRequestsMax times while others wait, there are too many slots, or a request of a higher
// priority waits.
func (w *LoadShedder) holdsSlot(c *Conn, p Priority, now time.Time) bool {
	if !c.slot.held {
		return w.slots.acquire(c, p, now)
	}
	c.slot.served++
	mustShare := c.slot.served >= slotRequestsMax && w.queue.hasHigherPriority(PriorityCount, now)
	return !mustShare && len(w.slots.holders) <= w.slots.capacity() && !w.queue.hasHigherPriority(p, now)
}

// releaseIdle passes on the slot of a connection that has no next request yet, or was closed.
func (w *LoadShedder) releaseIdle(c *Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.passSlot(c, w.clock())
}

// passSlot gives a connection's slot, if it has one, to the next waiting request, unless the number of slots has
// fallen meanwhile.
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

// refill gives unused slots to waiting requests whose age is below their queueAgeMax plus grace.
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

// record counts a sample or, while limiting, a request. When the current window is over, it judges the window and
// begins the next one.
func (w *LoadShedder) record(now time.Time, late bool) {
	if !w.watching.Load() {
		w.watching.Store(true)
		w.windowStart, w.onTime, w.late, w.lateWindows, w.quietWindows = now, 0, 0, 0, 0
	}
	if w.limiting.Load() && now.Sub(w.lastRefill) >= refillEvery {
		w.refill(now, 0)
	}
	switch elapsed := now.Sub(w.windowStart); {
	case elapsed < sampleWindow:
	case w.limiting.Load():
		w.endLimitedWindow(now)
		w.windowStart, w.onTime, w.late = now, 0, 0
	case w.late >= lateSamplesMin, w.late+w.onTime >= 2*lateSamplesMin, elapsed >= sampleGapMax:
		w.endWindow(elapsed < sampleGapMax && w.late >= lateSamplesMin && w.late > w.onTime)
		w.windowStart, w.onTime, w.late = now, 0, 0
	}
	if late {
		w.late++
	} else {
		w.onTime++
	}
}

// endWindow ends a window while not limiting.
func (w *LoadShedder) endWindow(overloaded bool) {
	if overloaded {
		w.lateWindows, w.quietWindows = w.lateWindows+1, 0
	} else {
		w.lateWindows, w.quietWindows = 0, w.quietWindows+1
	}
	switch {
	case w.lateWindows >= lateWindowsMin:
		w.limiting.Store(true)
		w.quietWindows = 0
	case w.quietWindows >= quietWindowsMin:
		w.watching.Store(false)
	}
}

// endLimitedWindow ends a window while limiting, and sheds some of the requests that have waited too long.
func (w *LoadShedder) endLimitedWindow(now time.Time) {
	limit, maxAge := 1+(w.onTime+w.late)/answersPerShed, Priority.queueAgeMax
	if w.slots.halfStalled(now) { // the process was paused: serve requests late rather than refuse them
		w.refill(now, idleGrace)
		limit, maxAge = shedsWhenIdle, func(p Priority) time.Duration { return p.queueAgeMax() + idleGrace }
	}
	if w.quietWindows++; w.late > 0 || !w.queue.empty() {
		w.quietWindows = 0
	}
	w.shed(now, maxAge, limit)
	if w.quietWindows >= quietWindowsMin {
		w.stopLimiting()
	}
}

// stopLimiting ends limiting: requests no longer need a slot.
func (w *LoadShedder) stopLimiting() {
	w.limiting.Store(false)
	w.watching.Store(false)
	w.slots.clear()
	w.quietWindows, w.lateWindows = 0, 0
}

// enqueue lets a request wait for a slot or its refusal; its channel admitted gets the result.
func (w *LoadShedder) enqueue(request *queuedRequest) {
	w.queue.add(request)
	if w.recheckTimer == nil {
		w.recheckTimer = time.AfterFunc(recheckEvery, w.recheck)
	}
}

// recheck stops limiting when no requests have come for a while, which record can't notice. It then sheds all waiting
// requests, otherwise those that have waited for queueTimeMax. It sheds at most shedAtOnceMax at a time, so that other
// goroutines can run in between.
func (w *LoadShedder) recheck() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, maxAge, interval := w.clock(), queueTimeMax, recheckEvery
	if w.limiting.Load() && now.Sub(w.windowStart) > quietWindowsMin*sampleWindow {
		w.stopLimiting()
	}
	if !w.limiting.Load() {
		maxAge, interval = 0, sampleWindow
	}
	w.shed(now, func(Priority) time.Duration { return maxAge }, shedAtOnceMax)
	if w.recheckTimer = nil; !w.ended && !w.queue.empty() {
		w.recheckTimer = time.AfterFunc(interval, w.recheck)
	}
}

// shed refuses at most limit of the requests that are older than maxAge of their priority.
func (w *LoadShedder) shed(now time.Time, maxAge func(Priority) time.Duration, limit int) {
	for range limit {
		request := w.queue.popExpired(now, maxAge)
		if request == nil {
			return
		}
		request.admitted <- false
	}
}
