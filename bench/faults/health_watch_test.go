//go:build faults

package faults

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"
)

const (
	// comesMax and goesMax are the promise of S15: how soon a fault shows, and how soon its end.
	comesMax = time.Second
	goesMax  = 5 * time.Second
	// lookEvery is the time between two looks.
	lookEvery = 10 * time.Millisecond
	// standsMin is how long a fault is left to stand, and its end after it: no condition may flap meanwhile.
	standsMin = 1500 * time.Millisecond
)

// look is what /readyz said at one moment.
type look struct {
	at     time.Time
	status int // 0 = no answer
	whole  string
	states map[string]string
}

// healthWatch asks /readyz and /livez again and again, each over a connection of its own that it opens at the beginning.
type healthWatch struct {
	mu    sync.Mutex
	looks []look
	lives int // answers of /livez
	dead  int // looks at it without a 200
}

// watchHealth watches a node until the test ends.
func watchHealth(t *testing.T, n *node) *healthWatch {
	t.Helper()
	w := &healthWatch{}
	stop := make(chan struct{})
	var ended sync.WaitGroup
	for _, ask := range []func(*caller){
		func(c *caller) {
			l := lookOnce(c, n.url+"/readyz")
			w.mu.Lock()
			defer w.mu.Unlock()
			w.looks = append(w.looks, l)
		},
		func(c *caller) {
			got, err := c.do(http.MethodGet, n.url+"/livez", "", nil)
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.lives++; err != nil || got.status != http.StatusOK {
				w.dead++
			}
		},
	} {
		ended.Go(func() {
			c := newCaller("127.0.9.9")
			defer c.close()
			ticker := time.NewTicker(lookEvery)
			defer ticker.Stop()
			for {
				ask(c)
				select {
				case <-ticker.C:
				case <-stop:
					return
				}
			}
		})
	}
	t.Cleanup(func() { close(stop); ended.Wait() })
	return w
}

// lookOnce asks once. The moment is that of the answer.
func lookOnce(c *caller, url string) look {
	got, err := c.do(http.MethodGet, url, "", nil)
	l := look{at: time.Now(), states: map[string]string{}}
	var said struct {
		Status     string
		Conditions []struct{ Name, State string }
	}
	if err == nil && json.Unmarshal(got.body, &said) == nil {
		l.status, l.whole = got.status, said.Status
		for _, c := range said.Conditions {
			l.states[c.Name] = c.State
		}
	}
	return l
}

// since are the looks from a moment on.
func (w *healthWatch) since(from time.Time) []look {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.looks {
		if !w.looks[i].at.Before(from) {
			return append([]look(nil), w.looks[i:]...)
		}
	}
	return nil
}

// first waits for a look that is right and returns how long after from it came; false when none came in time.
func (w *healthWatch) first(from time.Time, most time.Duration, right func(look) bool) (took time.Duration, in bool) {
	soon(time.Until(from)+most+10*lookEvery, func() bool {
		for _, l := range w.since(from) {
			if right(l) {
				took, in = l.at.Sub(from), l.at.Sub(from) <= most
				return true
			}
		}
		return false
	})
	return took, in
}

// stands reports that all looks of a span are right.
func (w *healthWatch) stands(span time.Duration, right func(look) bool) error {
	from := time.Now()
	wait(span)
	for _, l := range w.since(from) {
		if !right(l) {
			return fmt.Errorf("it flaps: after %s it is %v (%s)", l.at.Sub(from), l.states, l.whole)
		}
	}
	return nil
}

// plantedFault is a fault, and what /readyz must say of it.
type plantedFault struct {
	name, state string
	down        bool
	plant       func()        // when it returns the fault is there
	late        time.Duration // but for this
	mend        func()        // when it returns the fault is over
}

// judge plants a fault, mends it and tells how long /readyz took to say so, or what it did wrong.
func (w *healthWatch) judge(f plantedFault) (comes, goes time.Duration, err error) {
	shows := func(l look) bool {
		want, whole := http.StatusOK, "degraded"
		if f.down {
			want, whole = http.StatusServiceUnavailable, "unavailable"
		}
		return l.states[f.name] == f.state && l.status == want && l.whole == whole
	}
	well := func(l look) bool { return l.status == http.StatusOK && l.states[f.name] == "ok" }
	f.plant()
	comes, in := w.first(time.Now().Add(f.late), comesMax, shows)
	if !in {
		return 0, 0, fmt.Errorf("%s does not show %s within %s: %v", f.name, f.state, comesMax, w.last().states)
	}
	if err := w.stands(standsMin, shows); err != nil {
		return 0, 0, err
	}
	f.mend()
	goes, in = w.first(time.Now(), goesMax, well)
	if !in {
		return comes, 0, fmt.Errorf("%s does not go within %s: %v", f.name, goesMax, w.last().states)
	}
	if err := w.stands(standsMin, well); err != nil {
		return comes, goes, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead > 0 || w.lives == 0 {
		return comes, goes, fmt.Errorf("/livez: %d of %d looks without a 200", w.dead, w.lives)
	}
	return comes, goes, nil
}

func (w *healthWatch) last() look {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.looks) == 0 {
		return look{}
	}
	return w.looks[len(w.looks)-1]
}
