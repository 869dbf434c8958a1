package accounts

import (
	"sync"
	"sync/atomic"
	"time"
)

// FlushDelay is how long an event for which no request waits may stay in an outbox. Meanwhile the leases of all
// accounts are gathered into one write. An account asks for its next lease when half of the last one is left, which is
// seconds before it needs the lease.
const FlushDelay = 50 * time.Millisecond

// outboxFlusher is the goroutine that empties the outboxes of all shards FlushDelay after an event was posted.
type outboxFlusher struct {
	outboxes  []*outbox // set before start
	scheduled atomic.Bool
	wake      chan struct{} // of capacity 1; scheduled prevents a second value
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

// schedule wakes the flusher, after an event was posted.
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
		f.scheduled.Store(false) // events posted from now on schedule the next flush
		for _, outbox := range f.outboxes {
			if !outbox.empty() {
				outbox.notify()
			}
		}
	}
}

// end stops the flusher. Remaining events are written with the next urgent one.
func (f *outboxFlusher) end() {
	close(f.stop)
	f.done.Wait()
}
