package accounts

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// FlushDelay is how long an event of an account may stay in the outbox of its shard if no request waits for the event.
// A shard is an actor that keeps a part of the accounts; its outbox is the list of events that it writes next. During
// the delay, events of many accounts join one write. Most of them are quota leases, which reserve a part of a quota.
// The delay does no harm, because an account usually asks for a lease seconds before it needs the lease.
const FlushDelay = 50 * time.Millisecond

// outboxFlusher is a goroutine. It notifies each shard that has events in its outbox: FlushDelay after an event is
// posted, or at once if a request waits for an event.
type outboxFlusher struct {
	outboxes  []*outbox // set before start
	scheduled atomic.Bool
	hurried   atomic.Bool
	wake      chan struct{} // channel of capacity 1; scheduled prevents a second value
	urgent    chan struct{} // channel of capacity 1; hurried prevents a second value
	stop      chan struct{}
	done      sync.WaitGroup
}

func newOutboxFlusher() *outboxFlusher {
	return &outboxFlusher{wake: make(chan struct{}, 1), urgent: make(chan struct{}, 1), stop: make(chan struct{})}
}

func (f *outboxFlusher) start() {
	f.done.Add(1)
	go f.run()
}

// schedule makes the shards empty their outboxes after FlushDelay.
func (f *outboxFlusher) schedule() {
	if !f.scheduled.Load() && !f.scheduled.Swap(true) {
		f.wake <- struct{}{}
	}
}

// hurry makes the shards empty their outboxes at once.
func (f *outboxFlusher) hurry() {
	if !f.hurried.Load() && !f.hurried.Swap(true) {
		f.urgent <- struct{}{}
	}
}

func (f *outboxFlusher) run() {
	defer f.done.Done()
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	for {
		select {
		case <-f.stop:
			return
		case <-f.wake:
			timer.Reset(FlushDelay)
			continue
		case <-timer.C:
			f.scheduled.Store(false) // events posted from now on schedule the next flush
		case <-f.urgent:
			runtime.Gosched() // other goroutines that are ready post their events first, so that these share the write
			f.hurried.Store(false)
		}
		for _, outbox := range f.outboxes {
			if !outbox.empty() {
				outbox.notify()
			}
		}
	}
}

// end stops the flusher. Events that are posted afterwards are not written.
func (f *outboxFlusher) end() {
	close(f.stop)
	f.done.Wait()
}
