package accounts

import (
	"sync"
	"sync/atomic"
	"time"
)

// FlushDelay is how long a wish that nobody waits for may lie in an outbox. An account asks for its next
// lease when half of the last one is left, and seconds before it needs it: in that time the leases of all
// accounts are gathered and cost the disk one write, not one for each few of them.
const FlushDelay = 50 * time.Millisecond

// outboxFlusher is the goroutine that empties the outboxes of all shards a while after a wish was left in one.
type outboxFlusher struct {
	outboxes  []*outbox // set before start
	scheduled atomic.Bool
	wake      chan struct{} // one place, which expected guards
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

// schedule has it come by. Whoever calls it has left a wish before.
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
		p.scheduled.Store(false) // a wish that is left from now on calls again
		for _, box := range p.outboxes {
			if !box.empty() {
				box.notify()
			}
		}
	}
}

// end waits until it comes no more. What lies in the outboxes then goes with the next pressing wish.
func (p *outboxFlusher) end() {
	close(p.stop)
	p.done.Wait()
}
