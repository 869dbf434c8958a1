package mailbox

import (
	"runtime"
	"sync"

	"github.com/tasard/tasard/actors/yield"
)

// dispatcher runs actors that no caller runs: an actor that was idle when a one-way message came, or one whose caller
// has handled enough messages of others. Each mailbox is in the queue at most once, so the number of actors bounds it.
type dispatcher struct {
	workers  sync.WaitGroup
	jobSlots chan struct{} // semaphore: its capacity is the number of jobs that run at once

	mu         sync.Mutex
	work       sync.Cond
	head, tail *Ref
	closed     bool
}

func startDispatcher(workers int) *dispatcher {
	d := &dispatcher{jobSlots: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)-1))} // one processor is left for callers
	d.work.L = &d.mu
	for range workers {
		d.workers.Add(1)
		go d.run()
	}
	return d
}

// add queues a mailbox. The right to run the actor passes from the caller to a worker.
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

// yieldEvery is the number of mailboxes after which a worker yields to the network poller, so that requests are read.
const yieldEvery = 4

func (d *dispatcher) run() {
	defer d.workers.Done()
	for {
		r := d.pop(true)
		if r == nil {
			return
		}
		d.serve(r)
	}
}

// serve runs actors until the queue is empty.
func (d *dispatcher) serve(r *Ref) {
	var network yield.Network
	defer network.Close()
	for served := 1; r != nil; served++ {
		r.run(workerTurnMax)
		if served%yieldEvery == 0 {
			network.Yield()
		}
		r = d.pop(false)
	}
}

// startJob implements Ref.StartJob.
func (d *dispatcher) startJob(work func(pause func())) {
	d.workers.Add(1)
	go func() {
		defer d.workers.Done()
		d.jobSlots <- struct{}{}
		defer func() { <-d.jobSlots }()
		var network yield.Network
		defer network.Close()
		work(network.Yield)
	}()
}

// pop removes the next mailbox. If the queue is empty it returns nil, or with wait it waits until stop is called.
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

// stop waits until the queue is empty and every job has ended. All actors must have stopped.
func (d *dispatcher) stop() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.work.Broadcast()
	d.workers.Wait()
}
