package engine

import (
	"sync"
	"time"
)

// TroubleCalm is how long a trouble that comes and goes must stay away until it is over: so long that a condition does not flap, and
// less than the five seconds within which it has to show that all is well again.
const TroubleCalm = 3 * time.Second

// Trouble is something that is wrong now and then, or for a while. The zero value is well. It is safe for concurrent use. Times are
// the caller's; where they have a monotonic reading, steps of the wall clock change nothing.
type Trouble struct {
	mu      sync.Mutex
	began   time.Time
	last    time.Time
	lasting bool
	noted   bool
}

// Seen notes that it has just shown itself.
func (t *Trouble) Seen(now time.Time) { t.SeenSince(now, now) }

// SeenSince is Seen for one that began earlier than it was noticed.
func (t *Trouble) SeenSince(began, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.see(began, now)
}

func (t *Trouble) see(began, now time.Time) {
	if !t.present(now) {
		t.began = began
	}
	t.last, t.noted = now, true
}

// Begin notes that it lasts until End.
func (t *Trouble) Begin(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.see(now, now)
	t.lasting = true
}

// End notes that it is over, at once: for what can't come back by chance.
func (t *Trouble) End() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lasting, t.noted = false, false
}

// Calm notes that it does not last any more; it is over when it has stayed away for TroubleCalm.
func (t *Trouble) Calm(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lasting {
		t.lasting, t.last = false, now
	}
}

// Since is when it began; false when there is none.
func (t *Trouble) Since(now time.Time) (time.Time, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.present(now) {
		return time.Time{}, false
	}
	return t.began.Round(0).UTC(), true
}

// present: a clock that went back without a monotonic reading says nothing about how long ago it was.
func (t *Trouble) present(now time.Time) bool {
	return t.noted && (t.lasting || now.Sub(t.last).Abs() < TroubleCalm)
}
