package actors

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/engine"
)

// The states of a question. It has two holders: the asker, and whoever has the message (mailbox, actor).
// Each changes the state once, atomically, and the second one to do so knows what the first one did.
const (
	pending   uint32 = iota // nobody is done; the asker has not gone to sleep
	parked                  // the asker sleeps on done
	answered                // complete: the asker may read the answer and owns the question
	abandoned               // the asker has gone; whoever completes owns the question
)

// question is a message with room for its own answer: query goes in, answer or err comes out. It is
// completed exactly once: by the actor's reply, or by settle on overflow, panic or stop; or
// the asker abandons it at its deadline. Whoever comes second frees it.
type question[Q, A any] struct {
	query  Q
	answer A
	err    error

	state   atomic.Uint32
	done    chan struct{} // one place, so that completing never blocks
	timer   *time.Timer   // made at the first wait, used again
	home    *sync.Pool    // nil: used once, and completing it again is no harm
	settled atomic.Bool   // of a question without a home
}

// reply completes the question with the actor's answer. It must be the last thing that an actor does
// with it: the asker may be using it for the next question already. False: nobody will read the answer.
func (q *question[Q, A]) reply(answer A, err error) bool {
	if q.home == nil && q.settled.Swap(true) {
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
		panic("actors: a question was answered twice") // its next asker would get the wrong answer
	}
	return true
}

// settle completes the question without an answer.
func (q *question[Q, A]) settle(why *engine.Error) {
	var none A
	q.reply(none, why)
}

func (q *question[Q, A]) question() bool { return true }

func (q *question[Q, A]) abandoned() bool { return q.state.Load() == abandoned }

// free returns the question to its pool without what it carried.
func (q *question[Q, A]) free() {
	if q.home == nil {
		return
	}
	var query Q
	var answer A
	q.query, q.answer, q.err = query, answer, nil
	q.state.Store(pending)
	q.home.Put(q)
}

// wait returns the answer, or after the deadline an error. The question must not be used afterwards.
func (q *question[Q, A]) wait(deadline time.Duration) (A, error) {
	if q.state.Load() != answered && q.state.CompareAndSwap(pending, parked) && !q.sleep(deadline) {
		var none A
		return none, errExpired
	}
	answer, err := q.answer, q.err
	q.free()
	return answer, err
}

// sleep waits for the completion and reports whether it came before the deadline.
func (q *question[Q, A]) sleep(deadline time.Duration) bool {
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

// asks is where questions of one type come from. The pool belongs to the system and not to the package:
// timers and channels must not wander between test bubbles.
type asks[Q, A any] struct {
	deadline time.Duration
	pool     sync.Pool
}

func newAsks[Q, A any](deadline time.Duration) *asks[Q, A] {
	a := &asks[Q, A]{deadline: deadline}
	a.pool.New = func() any { return &question[Q, A]{done: make(chan struct{}, 1), home: &a.pool} }
	return a
}

// ask sends a query to an actor and waits for the answer. It must not be called by an actor.
func (a *asks[Q, A]) ask(to *ref, query Q) (A, error) {
	q := a.pool.Get().(*question[Q, A])
	q.query = query
	to.send(q)
	return q.wait(a.deadline)
}

// once is a question that is used once: for what is asked rarely, or kept by actors until later.
func once[Q, A any](query Q) *question[Q, A] {
	return &question[Q, A]{query: query, done: make(chan struct{}, 1)}
}

// await waits without a deadline. Only for a question that is used once.
func (q *question[Q, A]) await() (A, error) {
	if q.state.CompareAndSwap(pending, parked) {
		<-q.done
	}
	return q.answer, q.err
}
