package httpapi

import (
	"bytes"
	"container/list"
	"sync"
	"sync/atomic"
	"time"
)

// The numbers of the watch.
const (
	// lateAge is how long a request may lie in the socket on a machine that keeps up.
	lateAge = 20 * time.Millisecond
	// watchWindow is how long requests are counted before they are judged.
	watchWindow = 50 * time.Millisecond
	// watchGap is a window in which too little happened to say anything: the process stood still, or nobody asked.
	watchGap = 4 * watchWindow
	// lateMin is how many late requests a window must have: on a quiet node one request that met a pause proves nothing.
	lateMin = 16
	// hotWindows in a row of which most requests were late are overload; so many of which they were not end it.
	hotWindows = 2
	// calmWindows in a row end the watch over each request.
	calmWindows = 20
	// sampleEach is which requests of a connection are looked at while all is well: the first, and one of so many.
	sampleEach = 16

	// One of shedEach requests is a refusal while the overload lasts: it costs most of what an answer does. Afterwards one of shedAfter.
	shedEach  = 32
	shedAfter = 8
	// A request that is set aside looks after parkLook whether the overload is over, so many times at most.
	parkLook  = 2 * time.Second
	parkLooks = 5
)

// lane is whose turn comes when not all can be served.
type lane uint8

const (
	laneHealth      lane = iota // never waits
	laneKeyed                   // a key that was good on this connection, and within its quota
	laneAnonymous               // everybody else
	laneKeyedCostly             // history and conversions take the most work
	laneCostly
)

// patience is how old a request of a lane may get. Under overload requests are taken in the order in which they came and get older until
// the lane with the least patience is out, and then the next: so much load is left as the machine can do.
func (l lane) patience() time.Duration {
	switch l {
	case laneKeyed:
		return 120 * time.Millisecond
	case laneAnonymous:
		return 60 * time.Millisecond
	case laneKeyedCostly:
		return 40 * time.Millisecond
	default:
		return 25 * time.Millisecond
	}
}

// watch keeps an eye on how long requests have lain in their sockets before somebody read them. While they are read in time it looks at
// one in sampleEach and does nothing else. When most are late for hotWindows, those that are older than their lane's patience are set
// aside: their connections are not read any more. A refusal costs nearly as much as an answer, so they get theirs, 503, at a rate that
// leaves the work to be done; the clients' kernels hold back the rest.
type watch struct {
	clock func() time.Time
	idle  time.Duration // how long a connection may wait for its next request

	wakeful  atomic.Bool // every request is looked at
	shedding atomic.Bool
	ended    chan struct{}
	endOnce  sync.Once

	mu           sync.Mutex
	opened       time.Time // the present window
	prompt, late int       // its requests
	hot, calm    int       // windows in a row
	aside        list.List // of chan struct{}: requests that wait for their refusal, oldest first
}

func newWatch(clock func() time.Time, idle time.Duration) *watch {
	return &watch{clock: clock, idle: idle, ended: make(chan struct{})}
}

// end lets everybody go who was set aside.
func (w *watch) end() { w.endOnce.Do(func() { close(w.ended) }) }

// looksAt tells whether a connection's next request is looked at.
func (w *watch) looksAt(request uint32) bool { return request%sampleEach == 0 || w.wakeful.Load() }

// admit tells whether a request is to be served that lay in its socket for an age. One that isn't has waited here until it may be refused.
func (w *watch) admit(l lane, age time.Duration) bool {
	if l == laneHealth || age < lateAge && !w.wakeful.Load() {
		return true
	}
	w.count(w.clock(), age >= lateAge)
	if age < l.patience() || !w.shedding.Load() {
		return true
	}
	w.setAside()
	return false
}

// count counts a request, and judges the window that it ends.
func (w *watch) count(now time.Time, late bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.wakeful.Load() {
		w.wakeful.Store(true)
		w.opened, w.prompt, w.late, w.hot, w.calm = now, 0, 0, 0, 0
	}
	if lasted := now.Sub(w.opened); lasted >= watchWindow {
		w.judge(lasted < watchGap && w.late >= lateMin && w.late > w.prompt)
		w.opened, w.prompt, w.late = now, 0, 0
	}
	if late {
		w.late++
	} else {
		w.prompt++
	}
}

// judge ends a window.
func (w *watch) judge(over bool) {
	if over {
		w.hot, w.calm = w.hot+1, 0
	} else {
		w.hot, w.calm = 0, w.calm+1
	}
	switch {
	case w.hot >= hotWindows:
		w.shedding.Store(true)
	case w.calm >= calmWindows:
		w.shedding.Store(false)
		w.wakeful.Store(false)
	case w.calm >= hotWindows:
		w.shedding.Store(false)
	}
	share := shedEach
	if !w.shedding.Load() {
		share = shedAfter
	}
	for range 1 + (w.prompt+w.late)/share {
		oldest := w.aside.Front()
		if oldest == nil {
			return
		}
		close(w.aside.Remove(oldest).(chan struct{}))
	}
}

// setAside waits until a request may be refused.
func (w *watch) setAside() {
	turn := make(chan struct{})
	w.mu.Lock()
	place := w.aside.PushBack(turn)
	w.mu.Unlock()
	timer := time.NewTimer(parkLook)
	defer timer.Stop()
	for looks := 1; ; looks++ {
		select {
		case <-turn:
			return
		case <-w.ended:
			return
		case <-timer.C:
		}
		if looks == parkLooks || w.over() {
			w.mu.Lock()
			w.aside.Remove(place) // nothing, when its turn has come meanwhile
			w.mu.Unlock()
			return
		}
		timer.Reset(parkLook)
	}
}

// over tells that the overload has ended, also when nobody asks any more who would notice.
func (w *watch) over() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.shedding.Load() && w.clock().Sub(w.opened) > watchGap {
		w.shedding.Store(false)
		w.hot = 0
	}
	return !w.shedding.Load()
}

// laneOf reads the beginning of a request as it came: method, target, and whether it names a key. known says that the connection's last
// request had a key that was good, fresh that it is the connection's first: then it is believed once.
func laneOf(head []byte, known, fresh bool) lane {
	_, rest, _ := bytes.Cut(head, []byte(" "))
	target, lines, _ := bytes.Cut(rest, []byte(" "))
	if isHealthTarget(target) {
		return laneHealth
	}
	// Clients write the name in this way, or in small letters.
	keyed := known || fresh && bytes.Contains(lines, []byte("uthorization: "))
	costly := bytes.HasPrefix(target, []byte("/v1/rates/history")) || bytes.HasPrefix(target, []byte("/v1/convert"))
	switch {
	case costly && keyed:
		return laneKeyedCostly
	case costly:
		return laneCostly
	case keyed:
		return laneKeyed
	}
	return laneAnonymous
}

// isHealthTarget tells a question about the node itself: whoever restarts nodes that do not answer asks it, so it is answered whatever
// else is refused.
func isHealthTarget(target []byte) bool {
	path, _, _ := bytes.Cut(target, []byte("?"))
	switch string(path) {
	case livePath, liveOtherPath, readyPath:
		return true
	}
	return false
}
