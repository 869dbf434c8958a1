package httpapi

import (
	"io"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// heardAfter is how many turns the busy take, together, until somebody is heard for whom the network has something; turnsMax is never.
func heardAfter(t *testing.T, giveWay func()) int64 {
	t.Helper()
	const busy, turnsMax = 8, 100_000
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	defer in.Close()
	var turns atomic.Int64
	heard := make(chan int64, 1)
	var all sync.WaitGroup
	all.Go(func() {
		if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
			t.Error(err)
		}
		heard <- turns.Load()
	})
	runtime.Gosched() // it waits now
	if _, err := in.Write([]byte{0}); err != nil {
		t.Fatal(err)
	}
	for range busy {
		all.Go(func() {
			for len(heard) == 0 && turns.Add(1) < turnsMax {
				giveWay()
			}
		})
	}
	all.Wait()
	return <-heard
}

// TestO2_RoundsLetNewcomersIn: on one processor somebody new is heard after a round of the busy; when they only step back, after ten
// milliseconds of them.
func TestO2_RoundsLetNewcomersIn(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	r, err := startRounds()
	if err != nil {
		t.Fatal(err)
	}
	with := heardAfter(t, func() { r.giveWay(1) })
	now := heardAfter(t, func() { r.giveWay(watchedEach) })
	r.end()
	without := heardAfter(t, func() { r.giveWay(1) }) // as when there is no pipe
	t.Logf("heard after %d turns of the busy, %d when each %dth ends a round, %d when they only step back", with, now, watchedEach, without)
	if with > 16 || now > watchedEach+16 {
		t.Errorf("heard after %d and %d turns", with, now)
	}
	if without < 4*watchedEach {
		t.Errorf("stepping back is as good (%d): rounds are not needed any more", without)
	}
}

// TestO2_RoundsEnd: whoever waits in a round when the server ends goes on, and nobody waits afterwards.
func TestO2_RoundsEnd(t *testing.T) {
	r, err := startRounds()
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			for range 50 {
				r.giveWay(1)
			}
		})
	}
	r.giveWay(1)
	r.end()
	all.Wait()
	if before := r.number.Load(); r.wait(1) || r.number.Load() != before {
		t.Error("a round after the end")
	}
}

// TestO2_RoundsHearAll: whoever was there when a round began is heard before it ends, also when the network gives them in several parts.
func TestO2_RoundsHearAll(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const newcomers = 400
	const partMax = 128 // how many the scheduler takes at a time; the last of them may run behind us
	r, err := startRounds()
	if err != nil {
		t.Fatal(err)
	}
	defer r.end()
	var heard atomic.Int64
	var all sync.WaitGroup
	doors := make([]*os.File, newcomers)
	for i := range doors {
		out, in, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		doors[i] = in
		all.Go(func() {
			defer out.Close()
			if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
				t.Error(err)
			}
			heard.Add(1)
		})
	}
	runtime.Gosched() // they wait now
	for _, in := range doors {
		if _, err := in.Write([]byte{0}); err != nil {
			t.Fatal(err)
		}
	}
	r.giveWay(1)
	got := heard.Load()
	all.Wait()
	if got < newcomers-partMax {
		t.Errorf("of %d newcomers a round heard %d", newcomers, got)
	}
}
