package actors

import (
	"runtime"
	"sync"
)

// relief runs actors that nobody else runs: those that a fact woke up, and those whose asker has served
// others long enough. It has a few goroutines and a list in which each mailbox stands at most once, so
// it never holds more than there are actors.
//
// It also runs errands: what takes an actor so long that those who ask it meanwhile should not wait.
type relief struct {
	workers sync.WaitGroup
	errands chan struct{} // a place for each errand that may be at work at once

	mu         sync.Mutex
	work       sync.Cond
	head, tail *mailbox
	closed     bool
}

func startRelief(workers int) *relief {
	r := &relief{errands: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)-1))} // one processor is left for readers
	r.work.L = &r.mu
	for range workers {
		r.workers.Add(1)
		go r.run()
	}
	return r
}

// take puts a mailbox at the end of the list; whoever calls it passes on the right to run the actor.
func (r *relief) take(m *mailbox) {
	r.mu.Lock()
	if r.tail == nil {
		r.head = m
	} else {
		r.tail.next = m
	}
	r.tail = m
	r.mu.Unlock()
	r.work.Signal()
}

func (r *relief) run() {
	defer r.workers.Done()
	for {
		m := r.pop()
		if m == nil {
			return
		}
		m.turn(reliefTurnMax)
	}
}

// errand does work beside the actors, on a goroutine of its own. The work calls pause often, so that whoever reads goes first. An
// actor may send one errand at a time, and only while it lives.
func (r *relief) errand(work func(pause func())) {
	r.workers.Add(1)
	go func() {
		defer r.workers.Done()
		r.errands <- struct{}{}
		defer func() { <-r.errands }()
		var b Breath
		defer b.End()
		work(b.Take)
	}()
}

// pop waits for the next mailbox, nil when there will be none.
func (r *relief) pop() *mailbox {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.head == nil {
		if r.closed {
			return nil
		}
		r.work.Wait()
	}
	m := r.head
	r.head, m.next = m.next, nil
	if r.head == nil {
		r.tail = nil
	}
	return m
}

// stop waits until everything in the list is done, and every errand. Only after all actors have stopped.
func (r *relief) stop() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.work.Broadcast()
	r.workers.Wait()
}
