package mailbox

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/tasard/tasard/engine"
)

const (
	systemMax     = 16  // lifecycle messages that may wait; an actor gets three
	callerTurnMax = 64  // messages of other callers that a caller handles after its own
	workerTurnMax = 256 // messages that a worker handles before other actors get a turn
	ringMin       = 8   // initial length of a ring
)

// Ref is the address of an actor, with its mailbox. One goroutine at a time has the right to run the actor: a caller or
// a worker of the dispatcher. Other messages wait in a bounded queue. Messages of one sender stay in order. After the
// actor has stopped, every message is rejected.
type Ref struct {
	system *System
	kind   *Kind
	actor  Actor // called directly, because the library would double the cost of most messages

	mu      sync.Mutex
	running bool // a goroutine runs the actor, or the actor is in the queue of the dispatcher
	paused  bool // by the library, after a failure in a lifecycle message
	closed  bool
	waiting int
	head    int
	ring    []Message // allocated when the first message has to wait

	lifecycle []any         // messages of the library, which are handled first
	library   *registration // nil: the actor is not registered with the library
	stopped   chan struct{} // closed after the actor has stopped and all its messages are answered

	next *Ref // in the dispatcher's queue; guarded by its lock
}

// registration is an actor's registration with the library.
type registration struct {
	invoker actor.MessageInvoker // of lifecycle messages
	pid     *actor.PID
}

// Send accepts a message or rejects it. The caller of Send runs an idle actor to handle a request. A one-way
// message is handled by a worker, so that its sender never does the work of another actor.
func (r *Ref) Send(m Message) {
	asked := m.IsRequest()
	if err := r.post(m, asked, asked); err != nil {
		r.refuse(m, asked, err)
	}
}

// Deliver is Send, but the caller also runs an idle actor for one-way messages. For the owner of the actor.
func (r *Ref) Deliver(m Message) {
	asked := m.IsRequest()
	if err := r.post(m, asked, true); err != nil {
		r.refuse(m, asked, err)
	}
}

// TrySend is Send, but returns false if the actor is retired or has stopped.
func (r *Ref) TrySend(m Message) bool {
	asked := m.IsRequest()
	switch err := r.post(m, asked, asked); err {
	case nil:
	case ErrStopped:
		return false
	default:
		r.refuse(m, asked, err)
	}
	return true
}

// sendIdle is Send to an idle actor. It returns false if the actor is busy or has stopped.
func (r *Ref) sendIdle(m Message) bool {
	if !r.mu.TryLock() {
		return false
	}
	idle := !r.closed && !r.running && !r.paused && r.waiting == 0 && len(r.lifecycle) == 0
	r.running = r.running || idle
	r.mu.Unlock()
	if idle {
		r.deliver(m)
		r.run(callerTurnMax)
	}
	return idle
}

// post accepts a message or returns an error to reject it with. If direct is true, the caller runs an idle actor.
func (r *Ref) post(m Message, asked, direct bool) *engine.Error {
	r.mu.Lock()
	if err := r.checkRoom(asked); err != nil {
		r.mu.Unlock()
		return err
	}
	idle := !r.running && !r.paused
	r.running = r.running || idle
	first := idle && direct && r.waiting == 0 && len(r.lifecycle) == 0
	if !first {
		r.enqueue(m)
	}
	r.mu.Unlock()
	switch {
	case first:
		r.deliver(m)
		r.run(callerTurnMax)
	case idle && direct:
		r.run(callerTurnMax)
	case idle:
		r.system.dispatcher.add(r)
	}
	return nil
}

// Retire closes the mailbox of an idle actor if retire returns true. The state of the actor then belongs to the caller.
// retire may read and change that state. Only for actors of System.Init.
func (r *Ref) Retire(retire func() bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.running || r.waiting > 0 || len(r.lifecycle) > 0 || !retire() {
		return false
	}
	r.closed = true
	return true
}

// Stop stops the actor and waits until all its messages are answered.
func (r *Ref) Stop() {
	r.BeginStop()
	r.Wait()
}

// BeginStop makes the actor stop. Waiting messages are rejected.
func (r *Ref) BeginStop() {
	if r.library != nil {
		r.system.library.Root.Stop(r.library.pid)
		return
	}
	r.postLifecycle(&actor.Stop{})
}

// postLifecycle accepts a lifecycle message.
func (r *Ref) postLifecycle(message any) {
	r.mu.Lock()
	if r.closed || len(r.lifecycle) >= systemMax {
		full := !r.closed
		r.mu.Unlock()
		if full {
			r.system.fail(fmt.Errorf("a mailbox has no room for the lifecycle message %T", message))
		}
		return
	}
	if r.stopped == nil {
		r.stopped = make(chan struct{})
	}
	r.lifecycle = append(r.lifecycle, message)
	idle := !r.running
	r.running = true
	r.mu.Unlock()
	if idle {
		r.run(callerTurnMax)
	}
}

// Wait waits until the actor has stopped and all its messages are answered.
func (r *Ref) Wait() { <-r.stopped }

// Waiting returns how many messages wait.
func (r *Ref) Waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waiting
}

// StartJob runs long work of the actor in its own goroutine. Jobs leave one processor to callers. work calls pause
// every fraction of a millisecond to let callers go first (see package yield). An actor may have one job at a time, and
// none after it has stopped. System.Close waits for jobs.
func (r *Ref) StartJob(work func(pause func())) { r.system.dispatcher.startJob(work) }

// checkRoom returns the error to reject a message with, nil if it can be accepted.
func (r *Ref) checkRoom(asked bool) *engine.Error {
	switch {
	case r.closed:
		return ErrStopped
	case asked && r.waiting >= r.system.limit, r.waiting >= r.roomMax():
		return ErrOverloaded
	}
	return nil
}

// roomMax is how many messages may wait, one-way messages included.
func (r *Ref) roomMax() int { return r.system.limit + cmp.Or(r.kind.Reserve, ReserveDefault) }

func (r *Ref) refuse(m Message, asked bool, err *engine.Error) {
	switch {
	case err != ErrOverloaded:
	case asked:
		r.kind.refused.Add(1)
	default:
		r.system.fail(fmt.Errorf("a mailbox has no room for the one-way message %T", m))
	}
	m.Reject(err)
}

// enqueue stores a message. There must be room for it.
func (r *Ref) enqueue(m Message) {
	if r.waiting == len(r.ring) {
		larger := make([]Message, min(max(ringMin, 2*len(r.ring)), r.roomMax()))
		n := copy(larger, r.ring[r.head:])
		copy(larger[n:], r.ring[:r.head])
		r.ring, r.head = larger, 0
	}
	r.ring[(r.head+r.waiting)%len(r.ring)] = m
	r.waiting++
	r.kind.waiting.Add(1)
}

// run handles waiting messages. After a number of messages it hands the actor to the dispatcher. The caller must have
// the right to run the actor.
func (r *Ref) run(messages int) {
	for range messages {
		m, lifecycle, ok := r.dequeue()
		if !ok {
			return
		}
		if lifecycle == nil {
			r.deliver(m)
			continue
		}
		r.handleLifecycle(lifecycle)
		if _, stop := lifecycle.(*actor.Stop); stop {
			r.close()
			return
		}
	}
	r.system.dispatcher.add(r)
}

// dequeue removes the next message or lifecycle message. If there is none it gives up the right to run the actor.
func (r *Ref) dequeue() (m Message, lifecycle any, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case len(r.lifecycle) > 0:
		lifecycle, r.lifecycle = r.lifecycle[0], r.lifecycle[1:]
		return nil, lifecycle, true
	case r.waiting > 0 && !r.paused:
		m = r.ring[r.head]
		r.ring[r.head] = nil
		r.head = (r.head + 1) % len(r.ring)
		r.waiting--
		r.kind.waiting.Add(-1)
		return m, nil, true
	}
	r.running = false
	return nil, nil, false
}

// deliver makes the actor handle a message, and recovers panics.
func (r *Ref) deliver(m Message) {
	if m.Abandoned() {
		m.Reject(ErrExpired)
		return
	}
	defer r.recoverPanic(m)
	r.actor.Receive(m)
}

// recoverPanic handles a panic of the actor.
func (r *Ref) recoverPanic(m Message) {
	if reason := recover(); reason != nil {
		defer r.escalate(m)
		r.handlePanic(m, reason)
	}
}

// handlePanic rejects the message if the panic left the state intact (Actor.Fatal). Otherwise it stops the node, which
// must be started again from the log. The actor is never restarted with empty state.
func (r *Ref) handlePanic(m Message, reason any) {
	cause := fmt.Errorf("panic over %T: %v\n%s", m, reason, debug.Stack())
	if !r.actor.Fatal(m) {
		m.Reject(&engine.Error{Code: engine.CodeInternalError, Message: "an internal error", Cause: cause})
		return
	}
	r.system.fail(cause)
	stopped := r.system.failed(cause)
	r.actor.Abort(stopped)
	m.Reject(stopped)
}

func (r *Ref) handleLifecycle(lifecycle any) {
	defer r.escalate(lifecycle)
	switch lifecycle.(type) {
	case *actor.SuspendMailbox:
		r.pause(true)
	case *actor.ResumeMailbox:
		r.pause(false)
	default:
		if r.library == nil {
			r.actor.Abort(ErrStopped)
			return
		}
		r.library.invoker.InvokeSystemMessage(lifecycle)
	}
}

// escalate stops the node after a panic in handlePanic or over a lifecycle message.
func (r *Ref) escalate(message any) {
	switch reason := recover(); {
	case reason == nil:
	case r.library == nil:
		r.system.fail(fmt.Errorf("an actor of kind %s failed over %T: %v", r.kind.Name, message, reason))
	default:
		r.library.invoker.EscalateFailure(reason, message)
	}
}

func (r *Ref) pause(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.paused = on
}

// close closes the mailbox and rejects all messages that wait.
func (r *Ref) close() {
	r.mu.Lock()
	r.closed, r.running = true, false
	r.kind.waiting.Add(-int64(r.waiting))
	var remaining []Message
	for ; r.waiting > 0; r.waiting-- {
		remaining = append(remaining, r.ring[r.head])
		r.head = (r.head + 1) % len(r.ring)
	}
	r.ring, r.lifecycle = nil, nil
	r.mu.Unlock()
	for _, m := range remaining {
		m.Reject(ErrStopped)
	}
	close(r.stopped)
}
