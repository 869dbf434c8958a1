package mailbox

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/engine"
)

// The states of a question. It has two holders: the caller, and the mailbox or actor that has the message. Each changes
// the state once, atomically; the second one sees what the first one did.
const (
	pending   uint32 = iota // neither is done; the caller does not sleep yet
	parked                  // the caller sleeps on done
	answered                // the caller may read the answer and owns the question
	abandoned               // the caller has gone; the other side owns the question
)

// Question is a message with room for its own answer. It is completed exactly once, by Reply or Reject, or its caller
// abandons it at its deadline.
type Question[Q, A any] struct {
	Query  Q
	answer A
	err    error

	state    atomic.Uint32
	done     chan struct{} // buffered, so that completing never blocks
	timer    *time.Timer   // made at the first wait, used again
	pool     *sync.Pool    // nil: used once; completing it again has no effect
	choice   int           // index of the actor that AskAny tries first
	complete atomic.Bool   // of a question without a pool
}

// NewQuestion returns a question that is used once: one that is asked rarely, or that actors keep for later.
func NewQuestion[Q, A any](query Q) *Question[Q, A] {
	return &Question[Q, A]{Query: query, done: make(chan struct{}, 1)}
}

// Reply completes the question. The actor must not use it afterwards, because its caller may already use it for the
// next question. It returns false if the caller has gone.
func (q *Question[Q, A]) Reply(answer A, err error) bool {
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
		panic("mailbox: a question was answered twice") // its next caller would get a wrong answer
	}
	return true
}

// Reject completes the question with an error.
func (q *Question[Q, A]) Reject(why *engine.Error) {
	var none A
	q.Reply(none, why)
}

// Asked implements Message.
func (q *Question[Q, A]) Asked() bool { return true }

// Abandoned implements Message.
func (q *Question[Q, A]) Abandoned() bool { return q.state.Load() == abandoned }

// free clears the question and returns it to its pool.
func (q *Question[Q, A]) free() {
	if q.pool == nil {
		return
	}
	var query Q
	var answer A
	q.Query, q.answer, q.err = query, answer, nil
	q.state.Store(pending)
	q.pool.Put(q)
}

// Wait returns the answer, or ErrExpired after the deadline. The question must not be used afterwards.
func (q *Question[Q, A]) Wait(deadline time.Duration) (A, error) {
	if q.state.Load() != answered && q.state.CompareAndSwap(pending, parked) && !q.sleep(deadline) {
		var none A
		return none, ErrExpired
	}
	answer, err := q.answer, q.err
	q.free()
	return answer, err
}

// sleep waits for the completion. It returns false at the deadline.
func (q *Question[Q, A]) sleep(deadline time.Duration) bool {
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

// Await waits without a deadline. Only for a question of NewQuestion.
func (q *Question[Q, A]) Await() (A, error) {
	if q.state.CompareAndSwap(pending, parked) {
		<-q.done
	}
	return q.answer, q.err
}

// Asker asks questions of one type and reuses them. The zero value is ready. It must not be shared between Systems:
// timers and channels must not cross testing/synctest bubbles.
type Asker[Q, A any] struct {
	pool sync.Pool
	made atomic.Int32 // questions so far
}

// Ask sends a query to an actor and waits for the answer up to the deadline. An actor must not call it.
func (a *Asker[Q, A]) Ask(to *Ref, query Q, deadline time.Duration) (A, error) {
	q := a.question(query)
	to.Send(q)
	return q.Wait(deadline)
}

// AskFirst is Ask of first, or of other if first is nil or retired.
func (a *Asker[Q, A]) AskFirst(first, other *Ref, query Q, deadline time.Duration) (A, error) {
	q := a.question(query)
	if first == nil || !first.TrySend(q) {
		other.Send(q)
	}
	return q.Wait(deadline)
}

// AskAny is Ask of one of several actors that give the same answer: the one that the same processor asked last, unless
// it is busy. So processors share neither an actor nor what it writes, as long as there is one for each.
func (a *Asker[Q, A]) AskAny(actors []*Ref, query Q, deadline time.Duration) (A, error) {
	q := a.question(query) // the pool keeps questions for each processor
	q.choice %= len(actors)
	if !actors[q.choice].sendIdle(q) {
		q.choice = (q.choice + 1) % len(actors)
		actors[q.choice].Send(q)
	}
	return q.Wait(deadline)
}

func (a *Asker[Q, A]) question(query Q) *Question[Q, A] {
	q, _ := a.pool.Get().(*Question[Q, A])
	if q == nil {
		q = &Question[Q, A]{done: make(chan struct{}, 1), pool: &a.pool, choice: int(a.made.Add(1) & 0xffff)}
	}
	q.Query = query
	return q
}
