package mailbox

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/engine"
)

// States of a request. Two sides use it: the caller, and the mailbox or actor that has the message. Each side changes
// the state once, atomically, so the second side sees the change of the first.
const (
	pending   uint32 = iota // not answered; the caller does not sleep yet
	parked                  // not answered; the caller sleeps on done
	answered                // the caller may read the answer and owns the request
	abandoned               // the caller has gone; the other side owns the request
)

// Request is a message that also holds its answer. It is completed exactly once, by Reply or Reject, unless its caller
// abandons it at the deadline.
type Request[Q, A any] struct {
	Query  Q
	answer A
	err    error

	state    atomic.Uint32
	done     chan struct{} // buffered, so that completing never blocks
	timer    *time.Timer   // created at the first wait and reused
	pool     *sync.Pool    // nil: the request is used once, and completing it again has no effect
	choice   int           // index of the actor that AskAny tries first
	complete atomic.Bool   // used only without a pool
}

// NewRequest returns a request without a pool, for requests that are asked rarely or that actors keep for later.
func NewRequest[Q, A any](query Q) *Request[Q, A] {
	return &Request[Q, A]{Query: query, done: make(chan struct{}, 1)}
}

// Reply completes the request. The actor must not use the request afterwards, because the caller may already reuse
// it. Reply returns false if the caller has gone.
func (q *Request[Q, A]) Reply(answer A, err error) bool {
	if q.pool == nil && q.complete.Swap(true) {
		return false
	}
	q.answer, q.err = answer, err
	switch q.state.Swap(answered) {
	case parked:
		q.done <- struct{}{}
	case abandoned:
		q.free()
		return false
	case answered:
		panic("mailbox: a request was answered twice") // the next caller to reuse it would get a wrong answer
	}
	return true
}

// Reject completes the request with an error.
func (q *Request[Q, A]) Reject(err *engine.Error) {
	var zero A
	q.Reply(zero, err)
}

// Asked implements Message.
func (q *Request[Q, A]) IsRequest() bool { return true }

// Abandoned implements Message.
func (q *Request[Q, A]) Abandoned() bool { return q.state.Load() == abandoned }

// free clears the request and returns it to its pool.
func (q *Request[Q, A]) free() {
	if q.pool == nil {
		return
	}
	var query Q
	var answer A
	q.Query, q.answer, q.err = query, answer, nil
	q.state.Store(pending)
	q.pool.Put(q)
}

// Wait returns the answer, or ErrExpired after the deadline. The request must not be used afterwards.
func (q *Request[Q, A]) Wait(deadline time.Duration) (A, error) {
	if q.state.Load() != answered && q.state.CompareAndSwap(pending, parked) && !q.sleep(deadline) {
		var zero A
		return zero, ErrExpired
	}
	answer, err := q.answer, q.err
	q.free()
	return answer, err
}

// sleep waits for the completion. It returns false at the deadline.
func (q *Request[Q, A]) sleep(deadline time.Duration) bool {
	if q.timer == nil {
		q.timer = time.NewTimer(deadline)
	} else {
		q.timer.Reset(deadline)
	}
	select {
	case <-q.done:
		q.timer.Stop()
		return true
	case <-q.timer.C:
	}
	if q.state.CompareAndSwap(parked, abandoned) {
		return false
	}
	<-q.done // completed at the last moment
	return true
}

// Await waits without a deadline. Only for a request of NewRequest.
func (q *Request[Q, A]) Await() (A, error) {
	if q.state.CompareAndSwap(pending, parked) {
		<-q.done
	}
	return q.answer, q.err
}

// RequestPool asks requests of one type and reuses them. The zero value is ready. It must not be shared between
// Systems, because timers and channels must not cross testing/synctest bubbles.
type RequestPool[Q, A any] struct {
	pool    sync.Pool
	created atomic.Int32 // requests created so far
}

// Ask sends a query to an actor and waits for the answer up to the deadline. An actor must not call it.
func (a *RequestPool[Q, A]) Ask(to *Ref, query Q, deadline time.Duration) (A, error) {
	q := a.request(query)
	to.Send(q)
	return q.Wait(deadline)
}

// AskFirst is Ask of first, or of other if first is nil or retired.
func (a *RequestPool[Q, A]) AskFirst(first, other *Ref, query Q, deadline time.Duration) (A, error) {
	q := a.request(query)
	if first == nil || !first.TrySend(q) {
		other.Send(q)
	}
	return q.Wait(deadline)
}

// AskAny is Ask of one of several actors that give the same answer: the actor that this processor asked last, or the
// next one if it is busy. If there is an actor for each processor, processors do not share the memory of an actor.
func (a *RequestPool[Q, A]) AskAny(actors []*Ref, query Q, deadline time.Duration) (A, error) {
	q := a.request(query) // sync.Pool keeps the requests of each processor apart
	q.choice %= len(actors)
	if !actors[q.choice].sendIdle(q) {
		q.choice = (q.choice + 1) % len(actors)
		actors[q.choice].Send(q)
	}
	return q.Wait(deadline)
}

func (a *RequestPool[Q, A]) request(query Q) *Request[Q, A] {
	q, _ := a.pool.Get().(*Request[Q, A])
	if q == nil {
		q = &Request[Q, A]{done: make(chan struct{}, 1), pool: &a.pool, choice: int(a.created.Add(1) & 0xffff)}
	}
	q.Query = query
	return q
}
