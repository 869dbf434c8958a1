package mailbox

import "sync"

// dispatcher has a queue of actors, which its workers run. Ref.post adds an idle actor that got a one-way message.
// When a goroutine has handled as many messages of an actor as one turn allows, Ref.run puts the actor at the end
// of the queue. Each actor is in the queue at most once.
type dispatcher struct {
	workers sync.WaitGroup

	mu         sync.Mutex
	work       sync.Cond
	head, tail *Ref
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

// add queues an actor. After that a worker runs the actor, and the caller of add must not run it.
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

// pop removes the first actor of the queue and returns it. If the queue is empty, it waits for an actor. It returns nil
// after stop.
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

// stop waits until the queue is empty and every worker has ended. All actors must have stopped before.
func (d *dispatcher) stop() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.work.Broadcast()
	d.workers.Wait()
}
