package mailbox

import (
	"runtime"
	"sync"

	"github.com/tasard/tasard/actors/yield"
)

// dispatcher runs actors that no caller runs: those that a one-way message has woken, and those whose caller has
// handled others' messages for long enough. Its queue holds each mailbox at most once, so it is bounded by the number
// of actors.
type dispatcher struct {
	workers  sync.WaitGroup
	jobSlots chan struct{} // a place for each job that may run at once

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

// add queues a mailbox. Its caller hands over the right to run the actor.
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

// yieldEvery is after how many mailboxes a worker yields to the network poller, so that requests do not wait for it.
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

// pop removes the next mailbox. It returns nil if the queue is empty, with wait only once the dispatcher has stopped.
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

// stop waits until the queue is empty and every job is done. All actors must have stopped.
func (d *dispatcher) stop() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.work.Broadcast()
	d.workers.Wait()
}
