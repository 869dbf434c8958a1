package mailbox

import "sync"

// dispatcher holds a queue of actors with waiting messages, and the workers that run them. Ref.send adds an idle actor
// for a one-way message. Ref.run adds an actor again after it has handled callerTurnMax or workerTurnMax messages. The
// queue contains an actor at most once.
type dispatcher struct {
	workers sync.WaitGroup

	mu         sync.Mutex
	work       sync.Cond // signals the workers
	head, tail *Ref      // the queue, linked by Ref.next
	closed     bool
}

func startDispatcher(workers int) *dispatcher {
	d := &dispatcher{}
	d.work.L = &d.mu
	for range workers {
		d.workers.Add(1)
		go d.run()
	}
	return d
}

// add queues an actor for a worker. The caller must not run the actor itself.
func (d *dispatcher) add(r *Ref) {
	d.mu.Lock()
	if d.tail == nil {
		d.head = r
	} else {
		d.tail.next = r
	}
	d.tail = r
	d.mu.Unlock()
	d.work.Signal()
}

func (d *dispatcher) run() {
	defer d.workers.Done()
	for r := d.pop(); r != nil; r = d.pop() {
		r.run(workerTurnMax)
	}
}

// pop removes and returns the first actor of the queue. It blocks while the queue is empty, and returns nil after stop.
func (d *dispatcher) pop() *Ref {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.head == nil {
		if d.closed {
			return nil
		}
		d.work.Wait()
	}
	r := d.head
	d.head, r.next = r.next, nil
	if d.head == nil {
		d.tail = nil
	}
	return r
}

// stop blocks until the queue is empty and all workers have ended. All actors must be stopped first.
func (d *dispatcher) stop() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.work.Broadcast()
	d.workers.Wait()
}
