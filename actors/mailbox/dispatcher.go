package mailbox

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/actors/yield"
)

// dispatcher has a queue of actors, which its workers run. Ref.post adds an idle actor that got a one-way message.
// When a goroutine has handled as many messages of an actor as one turn allows, Ref.run puts the actor at the end
// of the queue. Each actor is in the queue at most once.
type dispatcher struct {
	elapsed  func() time.Duration
	workers  sync.WaitGroup // worker goroutines and jobs (Ref.StartJob)
	jobSlots chan struct{}  // semaphore: its capacity is the number of jobs that may run at once
	yields   atomic.Uint32  // how often a worker or job has yielded to the network poller

	mu         sync.Mutex
	work       sync.Cond
	head, tail *Ref
	closed     bool
}

func startDispatcher(workers int, elapsed func() time.Duration) *dispatcher {
	// One processor is left for the goroutines that send messages.
	d := &dispatcher{elapsed: elapsed, jobSlots: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)-1))}
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

// workMax is how long a worker runs actors before it yields to the network poller, so that requests that have arrived
// are read. A worker does not yield more often, because to yield takes two system calls, and to make a pipe the first
// time takes more.
const workMax = 50 * time.Microsecond

func (d *dispatcher) run() {
	defer d.workers.Done()
	var yielder yield.Yielder
	var yields uint32
	for r := d.pop(true); r != nil; r = d.pop(true) {
		for began := d.elapsed(); r != nil; r = d.pop(false) {
			r.run(workerTurnMax)
			// On a single processor the poller has its turn only when all workers yield. So if one yields, the others do too.
			switch over := d.elapsed()-began >= workMax; {
			case over:
				d.yields.Add(1)
			case d.yields.Load() == yields:
				continue
			}
			yielder.Yield()
			began, yields = d.elapsed(), d.yields.Load()
		}
		yielder.Close() // an idle worker keeps no file descriptors, and no goroutine that stops the clock of a synctest bubble
	}
}

func (d *dispatcher) startJob(work func(pause func())) {
	d.workers.Add(1)
	go func() {
		defer d.workers.Done()
		d.jobSlots <- struct{}{}
		defer func() { <-d.jobSlots }()
		var yielder yield.Yielder
		defer yielder.Close()
		work(func() {
			d.yields.Add(1)
			yielder.Yield()
		})
	}()
}

// pop removes the first actor of the queue and returns it. If the queue is empty and wait is true, it waits for an
// actor, and returns nil only after stop. If the queue is empty and wait is false, it returns nil.
func (d *dispatcher) pop(wait bool) *Ref {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.head == nil {
		if d.closed || !wait {
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

// stop waits until the queue is empty and every job has ended. All actors must have stopped before.
func (d *dispatcher) stop() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.work.Broadcast()
	d.workers.Wait()
}
