package conn

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// The numbers of the watch.
const (
	// lateAge is how long a request may lie in the socket on a machine that keeps up.
	lateAge = 10 * time.Millisecond
	// watchWindow is how long requests are counted before they are judged.
	watchWindow = 25 * time.Millisecond
	// watchGap is a window in which too little happened to say anything: the process stood still, or nobody asked.
	watchGap = 8 * watchWindow
	// lateMin is how many late requests a window must have: on a quiet node one request that met a pause proves nothing.
	lateMin = 8
	// hotWindows in a row of which most requests were late are overload.
	hotWindows = 2
	// calmWindows in a row end it, and the look at each request.
	calmWindows = 40
	// sampleEach is which requests of a connection are looked at while all is well: the first, and one of so many.
	sampleEach = 16

	// shedEach is how many answers come to one refusal while the overload lasts: a refusal costs most of what an answer does.
	shedEach = 64
	// shedIdle is how many refusals a window takes in which half of the seats stand empty.
	shedIdle = 64
	// idleGrace is how long beyond its lane's patience a request is still served when half of the seats stand empty.
	idleGrace = 100 * time.Millisecond
	// asideLook is how often it is looked whether the overload is over, and for requests that have waited for asideMax, of which
	// asideAtOnce are refused then.
	asideLook   = 2 * time.Second
	asideMax    = 30 * time.Second
	asideAtOnce = 64
)

// Overload sheds load by queue age: how long requests have lain in their sockets before they were read. While they are read in time it
// looks at one in sampleEach of a connection and does nothing else. doc.go explains what it does when most are late.
type Overload struct {
	clock        func() time.Time
	writeTimeout time.Duration // the server's

	wakeful atomic.Bool // every request is looked at
	seating atomic.Bool // slots are given out

	mu           sync.Mutex
	opened       time.Time // the present window
	prompt, late int       // its requests; while slots are given out, those that had one at once, and those that had to wait
	hot, calm    int       // windows in a row
	filled       time.Time // when slots were last given to requests that wait
	seats        seats
	waiting      waiting
	looks        *time.Timer // the next look; nil while nothing waits
	ended        bool        // nothing waits any more
	turns        *rounds     // nil: not begun, or ended
}

// NewOverload watches nothing yet. writeTimeout is that of the server whose connections it is for.
func NewOverload(clock func() time.Time, writeTimeout time.Duration) *Overload {
	return &Overload{clock: clock, writeTimeout: writeTimeout}
}

// End refuses every request that waits, or would have to.
func (w *Overload) End() {
	w.mu.Lock()
	turns := w.turns
	w.ended, w.turns, w.seats.rounds = true, nil, nil
	w.refuse(w.clock(), func(Lane) time.Duration { return math.MinInt64 }, math.MaxInt)
	if w.looks != nil {
		w.looks.Stop()
		w.looks = nil
	}
	w.mu.Unlock()
	if turns != nil {
		turns.end()
	}
}

// looksAt tells whether a connection's next request is looked at.
func (w *Overload) looksAt(request uint32) bool { return request%sampleEach == 0 || w.wakeful.Load() }

// roundEach is how many times connections give way before they do so in a round; 0 is never.
func (w *Overload) roundEach() int {
	switch {
	case w == nil || !w.wakeful.Load():
		return 0
	case w.seating.Load():
		return 1
	}
	return watchedEach
}

// admit tells whether a request is to be served. It may wait here for a seat, or until it may be refused.
func (w *Overload) admit(c *Conn, l Lane) bool {
	switch {
	case l == Health:
		return true
	case w.seating.Load():
		return w.admitSeated(c, l)
	}
	age := c.waited()
	if age < lateAge && !w.wakeful.Load() {
		return true
	}
	w.mu.Lock()
	w.count(w.clock(), age >= lateAge)
	w.mu.Unlock()
	return true
}

// admitSeated is admit while seats are given out.
func (w *Overload) admitSeated(c *Conn, l Lane) bool {
	now := w.clock()
	w.mu.Lock()
	if !w.seating.Load() { // since a moment
		w.mu.Unlock()
		return true
	}
	if w.keeps(c, l, now) {
		c.seat.lane = l
		w.seats.touch(c, now)
		w.count(now, false)
		w.mu.Unlock()
		return true
	}
	w.handOn(c, now)
	if w.ended {
		w.mu.Unlock()
		return false
	}
	place := c.waiter(l, now)
	w.lineUp(place)
	w.count(now, true)
	w.mu.Unlock()
	return <-place.turn
}

// keeps tells whether a request is served at once: its connection has a seat, in which it was not served too often while others wait, and
// for which no better lane does; or it had none and got one.
func (w *Overload) keeps(c *Conn, l Lane, now time.Time) bool {
	if !c.seat.held {
		return w.seats.take(c, l, now)
	}
	c.seat.turns++
	longEnough := c.seat.turns >= seatTurns && w.waiting.better(Lanes, now)
	return !longEnough && len(w.seats.held) <= w.seats.most() && !w.waiting.better(l, now)
}

// rest is called when a connection has nothing to do: its next request is not there yet, or it has ended.
func (w *Overload) rest(c *Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.handOn(c, w.clock())
}

// handOn gives a connection's slot, if it has one, to the next request that waits; unless there are fewer than there were.
func (w *Overload) handOn(c *Conn, now time.Time) {
	if !c.seat.held {
		return
	}
	w.seats.leave(c)
	if w.seats.full() {
		return
	}
	if next := w.waiting.youngest(now); next != nil {
		w.seats.take(next.conn, next.lane, now)
		next.turn <- true
	}
}

// fill gives seats to those who wait, as far as there are some that nobody uses. Those who have waited beyond their patience for no more
// than the grace count as well.
func (w *Overload) fill(now time.Time, grace time.Duration) {
	w.filled = now
	asOf := now.Add(-grace)
	for next := w.waiting.youngest(asOf); next != nil; next = w.waiting.youngest(asOf) {
		if !w.seats.take(next.conn, next.lane, now) {
			w.waiting.add(next)
			return
		}
		next.turn <- true
	}
}

// count counts a request, and judges the window that it ends.
func (w *Overload) count(now time.Time, late bool) {
	if !w.wakeful.Load() {
		w.wakeful.Store(true)
		w.opened, w.prompt, w.late, w.hot, w.calm = now, 0, 0, 0, 0
	}
	if w.seating.Load() && now.Sub(w.filled) >= fillEach {
		w.fill(now, 0)
	}
	if lasted := now.Sub(w.opened); lasted >= watchWindow {
		if w.seating.Load() {
			w.judgeSeats(now)
		} else {
			w.judge(lasted < watchGap && w.late >= lateMin && w.late > w.prompt)
		}
		w.opened, w.prompt, w.late = now, 0, 0
	}
	if late {
		w.late++
	} else {
		w.prompt++
	}
}

// judge ends a window in which requests were only watched.
func (w *Overload) judge(over bool) {
	if over {
		w.hot, w.calm = w.hot+1, 0
	} else {
		w.hot, w.calm = 0, w.calm+1
	}
	switch {
	case w.hot >= hotWindows:
		w.seating.Store(true)
		w.calm = 0
	case w.calm >= calmWindows:
		w.wakeful.Store(false)
	}
}

// judgeSeats ends a window in which seats were given out, and refuses some of those who have waited too long.
func (w *Overload) judgeSeats(now time.Time) {
	most, least := 1+(w.prompt+w.late)/shedEach, Lane.patience
	if w.seats.idle(now) { // who met a short pause is served late, and not refused
		w.fill(now, idleGrace)
		most, least = shedIdle, func(l Lane) time.Duration { return l.patience() + idleGrace }
	}
	if w.calm++; w.late > 0 || !w.waiting.empty() {
		w.calm = 0
	}
	w.refuse(now, least, most)
	if w.calm >= calmWindows {
		w.dismiss()
	}
}

// dismiss ends the overload.
func (w *Overload) dismiss() {
	w.seating.Store(false)
	w.wakeful.Store(false)
	w.seats.clear()
	w.calm, w.hot = 0, 0
}

// lineUp has a request wait for a slot: its turn comes, or its refusal.
func (w *Overload) lineUp(place *waiter) {
	w.waiting.add(place)
	if w.looks == nil {
		w.looks = time.AfterFunc(asideLook, w.look)
	}
}

// look ends an overload whose end is not noticed, because nothing is asked any more. It refuses what waits then, or has waited for
// asideMax: not all at once, others have their work too.
func (w *Overload) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, least, next := w.clock(), asideMax, asideLook
	if w.seating.Load() && now.Sub(w.opened) > calmWindows*watchWindow {
		w.dismiss()
	}
	if !w.seating.Load() {
		least, next = 0, watchWindow
	}
	w.refuse(now, func(Lane) time.Duration { return least }, asideAtOnce)
	if w.looks = nil; !w.ended && !w.waiting.empty() {
		w.looks = time.AfterFunc(next, w.look)
	}
}

// refuse refuses so many of those who have waited at least so long.
func (w *Overload) refuse(now time.Time, least func(Lane) time.Duration, most int) {
	for range most {
		one := w.waiting.past(now, least)
		if one == nil {
			return
		}
		one.turn <- false
	}
}
