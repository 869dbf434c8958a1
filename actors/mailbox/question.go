package mailbox

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/engine"
)

// The states of a question. It has two holders: the caller, and the one that has the message (mailbox, actor).
// Each changes the state once, atomically, and the second one to do so knows what the first one did.
const (
	pending   uint32 = iota // neither is done; the caller has not gone to sleep
	parked                  // the caller sleeps on done
	answered                // complete: the caller may read the answer and owns the question
	abandoned               // the caller has gone; the side that completes owns the question
)

// Question is a message with room for its own answer: Query goes in, an answer or an error comes out. It is completed
// exactly once: by Reply, or by Reject when the mailbox is full, the work panics or the actor stops; or the caller
// abandons it at its deadline. The second of the two frees it.
type Question[Q, A any] struct {
	Query  Q
	answer A
	err    error

	state    atomic.Uint32
	done     chan struct{} // one place, so that completing never blocks
	timer    *time.Timer   // made at the first wait, used again
	pool     *sync.Pool    // nil: used once, and completing it again is no harm
	choice   int           // of AskAny
	complete atomic.Bool   // of a question without a pool
}

// NewQuestion makes a question that is used once: for what is asked rarely, or kept by actors until later.
func NewQuestion[Q, A any](query Q) *Question[Q, A] {
	return &Question[Q, A]{Query: query, done: make(chan struct{}, 1)}
}

// Reply completes the question with the actor's answer. The actor must not use the question afterwards: its caller may
// have it in use for the next one already. False: the caller has gone, the answer is not read.
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
		panic("mailbox: a question was answered twice") // its next caller would get the wrong answer
	}
	return true
}

// Reject completes the question without an answer.
func (q *Question[Q, A]) Reject(why *engine.Error) {
	var none A
	q.Reply(none, why)
}

// Asked is Message.
func (q *Question[Q, A]) Asked() bool { return true }

// Abandoned is Message.
func (q *Question[Q, A]) Abandoned() bool { return q.state.Load() == abandoned }

// free returns the question to its pool without what it carried.
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

// Wait returns the answer, after the deadline ErrExpired. The question must not be used afterwards.
func (q *Question[Q, A]) Wait(deadline time.Duration) (A, error) {
	if q.state.Load() != answered && q.state.CompareAndSwap(pending, parked) && !q.sleep(deadline) {
		var none A
		return none, ErrExpired
	}
	answer, err := q.answer, q.err
	q.free()
	return answer, err
}

// sleep waits for the completion and reports whether it came before the deadline.
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
	<-q.done // completed at the last moment: the completion is on its way
	return true
}

// Await waits without a deadline. Only for a question of NewQuestion.
func (q *Question[Q, A]) Await() (A, error) {
	if q.state.CompareAndSwap(pending, parked) {
		<-q.done
	}
	return q.answer, q.err
}

// Asker asks questions of one type, and uses them again. The zero value is ready. Each System's user has its own: timers
// and channels must not wander between bubbles of testing/synctest.
type Asker[Q, A any] struct {
	pool sync.Pool
	made atomic.Int32 // questions
}

// Ask sends a query to an actor and waits so long for the answer. It must not be called by an actor.
func (a *Asker[Q, A]) Ask(to *Ref, query Q, deadline time.Duration) (A, error) {
	q := a.question(query)
	to.Send(q)
	return q.Wait(deadline)
}

// AskFirst is Ask of the first actor, or of the other one when there is no first, or it was retired.
func (a *Asker[Q, A]) AskFirst(first, other *Ref, query Q, deadline time.Duration) (A, error) {
	q := a.question(query)
	if first == nil || !first.TrySend(q) {
		other.Send(q)
	}
	return q.Wait(deadline)
}

// AskAny is Ask of one of several actors that give the same answer: the one that the same processor asked last, unless it is busy. So
// processors share neither actors nor what they write, as long as there is an actor for each.
func (a *Asker[Q, A]) AskAny(actors []*Ref, query Q, deadline time.Duration) (A, error) {
	q := a.question(query) // the pool keeps questions by processor
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
