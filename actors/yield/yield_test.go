package yield

import (
	"os"
	"runtime"
	"sync/atomic"
	"testing"
)

// TestF12_NetworkHasItsTurn: on one processor Yield runs a goroutine that waits for the network; runtime.Gosched does
// not.
func TestF12_NetworkHasItsTurn(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const tries = 50
	var b Yielder
	defer b.Close()
	b.Yield() // makes the pipe
	with, without := servedAfter(t, tries, b.Yield), servedAfter(t, tries, runtime.Gosched)
	first := servedAfter(t, tries, func() {
		var b Yielder
		b.Yield()
		b.Close()
	})
	t.Logf("of %d that waited, Yield served %d, a first Yield %d, and Gosched %d", tries, with, first, without)
	if min(with, first) < tries*9/10 {
		t.Errorf("%d and %d of %d were served", with, first, tries)
	}
	if without > tries/2 {
		t.Errorf("Gosched serves %d of %d as well: Yielder is not needed any more", without, tries)
	}
}

// servedAfter counts how often a goroutine with a ready file descriptor runs during a pause.
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

// TestF12_PipeFails: Yield does not wait for a byte from a pipe that is closed, and makes another pipe.
func TestF12_PipeFails(t *testing.T) {
	var b Yielder
	b.Yield()
	first := b.w
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	b.Yield()
	b.Yield()
	if b.w == nil || b.w == first {
		t.Error("Yield made no other pipe")
	}
	b.Close()
}
