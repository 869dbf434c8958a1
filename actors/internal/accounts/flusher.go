package accounts

import (
	"sync"
	"sync/atomic"
	"time"
)

// FlushDelay is how long an event for which no request waits may lie in an outbox. An account asks for its next lease
// when half of the last one is left, seconds before it needs it; meanwhile the leases of all accounts are gathered into
// one write.
const FlushDelay = 50 * time.Millisecond

// outboxFlusher is the goroutine that empties the outboxes of all shards FlushDelay after an event was posted.
type outboxFlusher struct {
	outboxes  []*outbox // set before start
	scheduled atomic.Bool
	wake      chan struct{} // buffered; scheduled guards it
	stop      chan struct{}
	done      sync.WaitGroup
}

func newOutboxFlusher() *outboxFlusher {
	return &outboxFlusher{wake: make(chan struct{}, 1), stop: make(chan struct{})}
}

func (p *outboxFlusher) start() {
	p.done.Add(1)
	go p.run()
}

// schedule wakes the flusher, after an event was posted.
func (p *outboxFlusher) schedule() {
	if !p.scheduled.Swap(true) {
		p.wake <- struct{}{}
	}
}

func (p *outboxFlusher) run() {
	defer p.done.Done()
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-p.wake:
		}
		pause.Reset(FlushDelay)
		select {
		case <-p.stop:
			return
		case <-pause.C:
		}
		p.scheduled.Store(false) // events posted from now on wake it again
		for _, box := range p.outboxes {
			if !box.empty() {
				box.notify()
			}
		}
	}
}

// end stops the flusher. Events that are left go with the next urgent one.
func (p *outboxFlusher) end() {
	close(p.stop)
	p.done.Wait()
}
