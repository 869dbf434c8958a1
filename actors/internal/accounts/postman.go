package accounts

import (
	"sync"
	"sync/atomic"
	"time"
)

// PostmanPause is how long a wish that nobody waits for may lie in an outbox. An account asks for its next
// lease when half of the last one is left, and seconds before it needs it: in that time the leases of all
// accounts are gathered and cost the disk one write, not one for each few of them.
const PostmanPause = 50 * time.Millisecond

// postman is the goroutine that empties the outboxes of all shards a while after a wish was left in one.
type postman struct {
	boxes    []*outbox // set before start
	expected atomic.Bool
	called   chan struct{} // one place, which expected guards
	stop     chan struct{}
	done     sync.WaitGroup
}

func newPostman() *postman {
	return &postman{called: make(chan struct{}, 1), stop: make(chan struct{})}
}

func (p *postman) start() {
	p.done.Add(1)
	go p.run()
}

// expect has it come by. Whoever calls it has left a wish before.
func (p *postman) expect() {
	if !p.expected.Swap(true) {
		p.called <- struct{}{}
	}
}

func (p *postman) run() {
	defer p.done.Done()
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-p.called:
		}
		pause.Reset(PostmanPause)
		select {
		case <-p.stop:
			return
		case <-pause.C:
		}
		p.expected.Store(false) // a wish that is left from now on calls again
		for _, box := range p.boxes {
			if !box.empty() {
				box.tell()
			}
		}
	}
}

// end waits until it comes no more. What lies in the outboxes then goes with the next pressing wish.
func (p *postman) end() {
	close(p.stop)
	p.done.Wait()
}
