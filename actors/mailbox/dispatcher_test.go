package mailbox

import (
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

type step struct{ OneWay }

// TestWorkersLetTheNetworkGo: on one processor a goroutine that waits for the network runs when one worker has run
// actors for workMax, and not when every worker has.
func TestWorkersLetTheNetworkGo(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const workers, actors, turn = 4, 100, workMax / 5
	var turns atomic.Int64
	s := NewSystem(Config{Limit: 10, Workers: workers, Elapsed: func() time.Duration { return time.Duration(turns.Load()) * turn }})
	t.Cleanup(s.Close)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	before := make(chan int64)
	go func() {
		_, _ = r.Read(make([]byte, 1))
		before <- turns.Load()
	}()
	runtime.Gosched() // it waits now
	toy := &testActor{behave: func(Message) {
		if turns.Add(1) == 1 {
			_, _ = w.Write([]byte{0})
		}
	}}
	refs := make([]Ref, actors)
	for i := range refs {
		s.Init(&refs[i], &Kind{Transient: true}, toy)
		refs[i].Send(&step{})
	}
	if got, most := <-before, int64(workMax/turn+2*workers); got > most {
		t.Errorf("the network waited for %d turns, at most %d", got, most)
	}
	for turns.Load() < actors {
		runtime.Gosched()
	}
	for _, file := range []*os.File{r, w} {
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}
}
