package accounts

import (
	"sync"
	"sync/atomic"
	"time"
)

// FlushDelay is how long an event may stay in an outbox if no request waits for the event. In this time the leases of
// many accounts join one write. The delay does no harm, because an account usually asks for a lease seconds early.
const FlushDelay = 50 * time.Millisecond

// outboxFlusher is a goroutine. FlushDelay after an event is posted, it notifies each shard that has events in its
// outbox.
type outboxFlusher struct {
	outboxes  []*outbox     // set before start
	scheduled atomic.Bool   // a flush will follow
	wake      chan struct{} // of capacity 1; schedule never blocks, because it sends only if scheduled was false
	stop      chan struct{}
	done      sync.WaitGroup
}

func newOutboxFlusher() *outboxFlusher {
	return &outboxFlusher{wake: make(chan struct{}, 1), stop: make(chan struct{})}
}

func (f *outboxFlusher) start() {
	f.done.Add(1)
	go f.run()
}

// schedule makes the flusher run after FlushDelay, unless it is already scheduled.
func (f *outboxFlusher) schedule() {
	if !f.scheduled.Swap(true) {
		f.wake <- struct{}{}
	}
}

func (f *outboxFlusher) run() {
	defer f.done.Done()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-f.stop:
			return
		case <-f.wake:
		}
		timer.Reset(FlushDelay)
		select {
		case <-f.stop:
			return
		case <-timer.C:
		}
		f.scheduled.Store(false) // before the loop, so that an event posted during the loop schedules another flush
		for _, outbox := range f.outboxes {
			if !outbox.empty() {
				outbox.notify()
			}
		}
	}
}

// end stops the flusher. Events that are still in an outbox stay there until an urgent event is posted.
func (f *outboxFlusher) end() {
	close(f.stop)
	f.done.Wait()
}
