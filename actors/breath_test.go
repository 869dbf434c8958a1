package actors

import (
	"os"
	"runtime"
	"sync/atomic"
	"testing"
)

// F12: on one processor, who waits for the network has had its turn when breath was taken; yielding alone does not do that.
func TestF12_BreathLetsTheNetworkIn(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const tries = 50
	var b Breath
	defer b.End()
	b.Take() // makes the pipe
	with, without := servedAfter(t, tries, b.Take), servedAfter(t, tries, runtime.Gosched)
	t.Logf("of %d who waited, breath served %d and yielding %d", tries, with, without)
	if with < tries*9/10 {
		t.Errorf("%d of %d were served", with, tries)
	}
	if without > tries/2 {
		t.Errorf("yielding serves %d of %d as well: breath is not needed any more", without, tries)
	}
}

// servedAfter counts how often somebody who waits for a file descriptor that has become ready runs while a
// pause is made.
func servedAfter(t *testing.T, tries int, pause func()) (served int) {
	t.Helper()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var seen atomic.Int64
	ended := make(chan struct{})
	took := make(chan struct{}, 1)
	go func() {
		defer close(ended)
		var one [1]byte
		for {
			if _, err := out.Read(one[:]); err != nil {
				return
			}
			seen.Add(1)
			took <- struct{}{}
		}
	}()
	runtime.Gosched() // it waits now
	for range tries {
		before := seen.Load()
		if _, err := in.Write([]byte{0}); err != nil {
			t.Fatal(err)
		}
		pause()
		if seen.Load() > before {
			served++
		}
		<-took
		runtime.Gosched() // it waits again
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	<-ended
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return served
}

// Without a pipe, as when all file descriptors are in use, taking breath yields and comes back.
func TestF12_BreathWithoutAPipe(t *testing.T) {
	b := Breath{broken: true}
	b.Take()
	b.End()
	var lost Breath
	lost.Take()
	if err := lost.in.Close(); err != nil {
		t.Fatal(err)
	}
	lost.Take() // the pipe is gone: nothing waits for a byte that never comes
	lost.Take()
	lost.End()
}
