package conn

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Sampling.
const (
	// queueAgeTarget is how long a request may lie unread in its socket on a machine that keeps up.
	queueAgeTarget = 10 * time.Millisecond
	// sampleEvery is which requests of a connection are sampled while no slots are given out: asking the kernel for
	// the queue age is a system call.
	sampleEvery = 16
	// sampleWindow is for how long samples are counted, at least, before the window is judged.
	sampleWindow = 25 * time.Millisecond
	// sampleGapMax is a window that says nothing: the process stood still, or there were few requests.
	sampleGapMax = 8 * sampleWindow
	// lateSamplesMin is how many late samples a window must have: on a quiet node one request that met a pause
	// proves nothing.
	lateSamplesMin = 8
	// lateWindowsMin windows in a row in which most samples were late are overload.
	lateWindowsMin = 2
	// quietWindowsMin windows in a row end it, and the watch.
	quietWindowsMin = 40
)

// Shedding.
const (

	// answersPerShed is how many answers come to one refusal while the overload lasts: a refusal costs most of what
	// an answer does.
	answersPerShed = 64
	// shedsWhenIdle is how many refusals a window takes in which half of the slots are idle.
	shedsWhenIdle = 64
	// idleGrace is how long beyond the queueAgeMax of its priority a request is still served when half of the slots are
	// idle.
	idleGrace = 100 * time.Millisecond
	// recheckEvery is how often it is looked whether the overload is over, and for requests that have waited for
	// queueTimeMax, of which shedAtOnceMax are refused then.
	recheckEvery  = 2 * time.Second
	queueTimeMax  = 30 * time.Second
	shedAtOnceMax = 64
)

// LoadShedder sheds load by queue age: how long requests have lain in their sockets before they were read. It
// samples one request in sampleEvery of a connection; while those are on time it does nothing else. doc.go explains
// what it does when most are late.
type LoadShedder struct {
	clock        func() time.Time
	writeTimeout time.Duration // the server's

	watching atomic.Bool // a sample was late lately
	limiting atomic.Bool // slots are given out

	mu                        sync.Mutex
	windowStart               time.Time // the present window
	onTime, late              int       // its samples; while slots are given out, the requests that had one at once, and those that had to wait
	lateWindows, quietWindows int       // windows in a row
	lastRefill                time.Time // when slots were last given to requests that wait
	slots                     admissionSlots
	queue                     requestQueue
	recheckTimer              *time.Timer       // the next look; nil while nothing waits
	ended                     bool              // nothing waits any more
	rounds                    *schedulingRounds // nil: not begun, or ended
}

// NewLoadShedder makes a LoadShedder for the connections of a server with this writeTimeout.
func NewLoadShedder(clock func() time.Time, writeTimeout time.Duration) *LoadShedder {
	return &LoadShedder{clock: clock, writeTimeout: writeTimeout}
}

// End refuses every request that waits, or would have to.
func (w *LoadShedder) End() {
	w.mu.Lock()
	turns := w.rounds
	w.ended, w.rounds, w.slots.rounds = true, nil, nil
	w.shed(w.clock(), func(Priority) time.Duration { return math.MinInt64 }, math.MaxInt)
	if w.recheckTimer != nil {
		w.recheckTimer.Stop()
		w.recheckTimer = nil
	}
	w.mu.Unlock()
	if turns != nil {
		turns.close()
	}
}

// samples tells whether a connection's next request is to be shown to admit.
func (w *LoadShedder) samples(request uint32) bool {
	return request%sampleEvery == 0 || w.limiting.Load()
}

// yieldsPerRound is after how many answers connections yield in a round; 0 is never.
func (w *LoadShedder) yieldsPerRound() int {
	switch {
	case w == nil || !w.watching.Load():
		return 0
	case w.limiting.Load():
		return 1
	}
	return yieldsPerRoundWatching
}

// admit tells whether a sampled request is to be served. While slots are given out it may wait for one, or until it is
// shed.
func (w *LoadShedder) admit(c *Conn, l Priority) bool {
	switch {
	case l == Health:
		return true
	case w.limiting.Load():
		return w.admitLimited(c, l)
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

// admitLimited is admit while slots are given out.
func (w *LoadShedder) admitLimited(c *Conn, l Priority) bool {
	now := w.clock()
	w.mu.Lock()
	if !w.limiting.Load() { // since a moment
		w.mu.Unlock()
		return true
	}
	if w.holdsSlot(c, l, now) {
		c.slot.priority = l
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
	place := c.queueEntry(l, now)
	w.enqueue(place)
	w.record(now, true)
	w.mu.Unlock()
	return <-place.admitted
}

// holdsSlot tells whether a request is served at once: its connection holds a slot, has not used it too often while
// others wait, and no request of a higher priority waits for it; or it got a free one.
func (w *LoadShedder) holdsSlot(c *Conn, l Priority, now time.Time) bool {
	if !c.slot.held {
		return w.slots.acquire(c, l, now)
	}
	c.slot.served++
	longEnough := c.slot.served >= slotRequestsMax && w.queue.hasHigherPriority(PriorityCount, now)
	return !longEnough && len(w.slots.holders) <= w.slots.capacity() && !w.queue.hasHigherPriority(l, now)
}

// releaseIdle passes on the slot of a connection that has no next request yet, or has ended.
func (w *LoadShedder) releaseIdle(c *Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.passSlot(c, w.clock())
}

// passSlot gives a connection's slot, if it has one, to the next request that waits; unless there are fewer than
// there were.
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

// refill gives unused slots to requests that wait, also to those that have waited beyond their queueAgeMax for at most
// the grace.
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

// record counts a sample, or a request while slots are given out, and judges the window that it ends.
func (w *LoadShedder) record(now time.Time, late bool) {
	if !w.watching.Load() {
		w.watching.Store(true)
		w.windowStart, w.onTime, w.late, w.lateWindows, w.quietWindows = now, 0, 0, 0, 0
	}
	if w.limiting.Load() && now.Sub(w.lastRefill) >= refillEvery {
		w.refill(now, 0)
	}
	switch lasted := now.Sub(w.windowStart); {
	case lasted < sampleWindow:
	case w.limiting.Load():
		w.endLimitedWindow(now)
		w.windowStart, w.onTime, w.late = now, 0, 0
	case w.late >= lateSamplesMin, w.late+w.onTime >= 2*lateSamplesMin, lasted >= sampleGapMax:
		w.endWindow(lasted < sampleGapMax && w.late >= lateSamplesMin && w.late > w.onTime)
		w.windowStart, w.onTime, w.late = now, 0, 0
	}
	if late {
		w.late++
	} else {
		w.onTime++
	}
}

// endWindow ends a window in which requests were only watched.
func (w *LoadShedder) endWindow(over bool) {
	if over {
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

// endLimitedWindow ends a window in which slots were given out, and sheds some of the requests that have waited too
// long.
func (w *LoadShedder) endLimitedWindow(now time.Time) {
	most, least := 1+(w.onTime+w.late)/answersPerShed, Priority.queueAgeMax
	if w.slots.halfStalled(now) { // after a short pause requests are served late, not refused
		w.refill(now, idleGrace)
		most, least = shedsWhenIdle, func(l Priority) time.Duration { return l.queueAgeMax() + idleGrace }
	}
	if w.quietWindows++; w.late > 0 || !w.queue.empty() {
		w.quietWindows = 0
	}
	w.shed(now, least, most)
	if w.quietWindows >= quietWindowsMin {
		w.stopLimiting()
	}
}

// stopLimiting ends the overload.
func (w *LoadShedder) stopLimiting() {
	w.limiting.Store(false)
	w.watching.Store(false)
	w.slots.clear()
	w.quietWindows, w.lateWindows = 0, 0
}

// enqueue has a request wait for a slot: its turn comes, or its refusal.
func (w *LoadShedder) enqueue(place *queuedRequest) {
	w.queue.add(place)
	if w.recheckTimer == nil {
		w.recheckTimer = time.AfterFunc(recheckEvery, w.recheck)
	}
}

// recheck ends an overload whose end was not noticed, because no requests come any more. It sheds requests that wait
// then, or have waited for queueTimeMax: some at a time, so that others go on.
func (w *LoadShedder) recheck() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, least, next := w.clock(), queueTimeMax, recheckEvery
	if w.limiting.Load() && now.Sub(w.windowStart) > quietWindowsMin*sampleWindow {
		w.stopLimiting()
	}
	if !w.limiting.Load() {
		least, next = 0, sampleWindow
	}
	w.shed(now, func(Priority) time.Duration { return least }, shedAtOnceMax)
	if w.recheckTimer = nil; !w.ended && !w.queue.empty() {
		w.recheckTimer = time.AfterFunc(next, w.recheck)
	}
}

// shed refuses at most so many of the requests that have waited for least.
func (w *LoadShedder) shed(now time.Time, least func(Priority) time.Duration, most int) {
	for range most {
		one := w.queue.popExpired(now, least)
		if one == nil {
			return
		}
		one.admitted <- false
	}
}
