package mailbox

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/engine"
)

// States of a request. The caller and the actor change them atomically, so exactly one of the two returns the request
// to its pool: the caller if the answer came in time, else the actor.
const (
	pending   uint32 = iota // no answer yet; the caller does not wait yet
	sleeping                // no answer yet; the caller waits on the channel done
	answered                // the caller may read the answer
	abandoned               // the caller's deadline passed before the answer
)

// Request is a message with room for its answer. Reply or Reject completes it exactly once. The caller abandons the
// request at its deadline.
type Request[Q, A any] struct {
	Query  Q
	answer A
	err    error

	state     atomic.Uint32
	done      chan struct{} // buffered, so that Reply never blocks
	timer     *time.Timer   // created by the first sleep and reused
	pool      *sync.Pool    // nil: the request is not reused, and a second Reply has no effect
	choice    int           // index of the actor that AskAny tries first
	completed atomic.Bool   // Reply was called; used only if pool is nil
}

// NewRequest returns a request without a pool. Use it for rare requests and for those that an actor keeps.
func NewRequest[Q, A any](query Q) *Request[Q, A] {
	return &Request[Q, A]{Query: query, done: make(chan struct{}, 1)}
}

// Reply completes the request. It returns false if the caller has abandoned the request. The actor must not use the
// request afterwards, because the caller may already reuse it.
func (q *Request[Q, A]) Reply(answer A, err error) bool {
	if q.pool == nil && q.completed.Swap(true) {
		return false
	}
	q.answer, q.err = answer, err
	switch q.state.Swap(answered) {
	case sleeping:
		q.done <- struct{}{}
	case abandoned:
		q.free()
		return false
	case answered:
		panic("mailbox: a request was answered twice") // a later user of the request would get this answer
	}
	return true
}

// Reject completes the request with an error.
func (q *Request[Q, A]) Reject(err *engine.Error) {
	var zero A
	q.Reply(zero, err)
}

// IsRequest implements Message.
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

// Wait returns the answer, or ErrExpired after the deadline. The caller must not use the request afterwards.
func (q *Request[Q, A]) Wait(deadline time.Duration) (A, error) {
	if q.state.Load() != answered && q.state.CompareAndSwap(pending, sleeping) && !q.sleep(deadline) {
		var zero A
		return zero, ErrExpired
	}
	answer, err := q.answer, q.err
	q.free()
	return answer, err
}

// sleep blocks until Reply completes the request. It returns false if the deadline comes first.
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
	if q.state.CompareAndSwap(sleeping, abandoned) {
		return false
	}
	<-q.done // Reply was called after the timer fired
	return true
}

// Await is like Wait without a deadline. It does not return the request to a pool, so use it only after NewRequest.
func (q *Request[Q, A]) Await() (A, error) {
	if q.state.CompareAndSwap(pending, sleeping) {
		<-q.done
	}
	return q.answer, q.err
}

// RequestPool sends and reuses requests of one type. The zero value is ready for use. Each System needs its own pools:
// tests run systems in different testing/synctest bubbles, and a timer must not leave its bubble.
type RequestPool[Q, A any] struct {
	pool    sync.Pool
	created atomic.Int32 // number of requests created so far
}

// Ask sends a query to an actor and returns the answer, or ErrExpired after the deadline. An actor must not call it.
func (a *RequestPool[Q, A]) Ask(to *Ref, query Q, deadline time.Duration) (A, error) {
	q := a.request(query)
	to.Send(q)
	return q.Wait(deadline)
}

// AskAny asks one of several equivalent actors. It prefers the actor that this processor asked last, to avoid cache
// traffic between processors. If that actor is busy, it asks the next one.
func (a *RequestPool[Q, A]) AskAny(actors []*Ref, query Q, deadline time.Duration) (A, error) {
	q := a.request(query) // q.choice belongs to this processor: sync.Pool keeps a list for each processor
	if q.choice %= len(actors); actors[q.choice].Busy() {
		q.choice = (q.choice + 1) % len(actors)
	}
	actors[q.choice].Send(q)
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
