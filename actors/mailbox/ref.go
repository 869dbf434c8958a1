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
	callerTurnMax = 64  // messages of others that a caller handles after its own
	workerTurnMax = 256 // messages that a worker handles before other actors get a turn
	ringMin       = 8   // initial length of a ring
)

// Ref is the address of an actor and its mailbox: a bounded queue, and the right to run the actor, which one goroutine
// has at a time, a caller or a worker of the dispatcher. Messages of one sender stay in order. After the actor has
// stopped every message is rejected.
type Ref struct {
	system *System
	kind   *Kind
	actor  Actor // called directly: the library would double the cost of most messages

	mu      sync.Mutex
	running bool // a goroutine runs the actor, or a worker is about to
	paused  bool // by the library, after a failure in a lifecycle message
	closed  bool
	waiting int
	head    int
	ring    []Message // made when a message has to wait

	lifecycle []any         // the library's messages, which come first
	library   *registration // nil: the actor is not registered with the library
	stopped   chan struct{} // closed after the actor has stopped and all its messages are answered

	next *Ref // in the dispatcher's queue; guarded by its lock
}

// registration is an actor's registration with the library.
type registration struct {
	invoker actor.MessageInvoker // of lifecycle messages
	pid     *actor.PID
}

// Send accepts a message or rejects it. A question to an idle actor is answered when it returns. A one-way message is
// handled by a worker, so that its sender never does another actor's work.
func (r *Ref) Send(m Message) {
	asked := m.Asked()
	if refusal := r.post(m, asked, asked); refusal != nil {
		r.refuse(m, asked, refusal)
	}
}

// Deliver is Send for the owner of an actor: a one-way message to an idle actor is handled when it returns.
func (r *Ref) Deliver(m Message) {
	asked := m.Asked()
	if refusal := r.post(m, asked, true); refusal != nil {
		r.refuse(m, asked, refusal)
	}
}

// TrySend is Send, but returns false if the actor is retired or has stopped.
func (r *Ref) TrySend(m Message) bool {
	asked := m.Asked()
	switch refusal := r.post(m, asked, asked); refusal {
	case nil:
	case ErrStopped:
		return false
	default:
		r.refuse(m, asked, refusal)
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

// post accepts a message or returns why not. If the actor is idle and direct is true, the caller runs it.
func (r *Ref) post(m Message, asked, direct bool) *engine.Error {
	r.mu.Lock()
	if refusal := r.refusal(asked); refusal != nil {
		r.mu.Unlock()
		return refusal
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

// Retire ends an idle actor if done returns true: it has no messages and will get none. Its state then belongs to the
// caller. done may read and change the state. Only for actors of System.Init.
func (r *Ref) Retire(done func() bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.running || r.waiting > 0 || len(r.lifecycle) > 0 || !done() {
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

// BeginStop stops the actor, before the messages that wait.
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

// StartJob runs long work of the actor in a goroutine of its own; one processor is left for callers. The work calls
// pause every fraction of a millisecond, which lets callers go first (see package yield). An actor may have one job at
// a time, and only while it lives; System.Close waits for it.
func (r *Ref) StartJob(work func(pause func())) { r.system.dispatcher.startJob(work) }

// refusal returns why a message cannot be accepted, nil if it can.
func (r *Ref) refusal(asked bool) *engine.Error {
	switch {
	case r.closed:
		return ErrStopped
	case asked && r.waiting >= r.system.limit, r.waiting >= r.roomMax():
		return ErrOverloaded
	}
	return nil
}

// roomMax is how many messages fit, one-way messages included.
func (r *Ref) roomMax() int { return r.system.limit + cmp.Or(r.kind.Reserve, ReserveDefault) }

func (r *Ref) refuse(m Message, asked bool, why *engine.Error) {
	switch {
	case why != ErrOverloaded:
	case asked:
		r.kind.refused.Add(1)
	default:
		r.system.fail(fmt.Errorf("a mailbox has no room for the one-way message %T", m))
	}
	m.Reject(why)
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

// run runs the actor until no message waits, or hands it to the dispatcher after so many messages. Its caller has the
// right to run the actor.
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

// deliver has the actor handle a message. Its panics end in recoverPanic.
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

// handlePanic rejects only the message if its work changes nothing. Otherwise it stops the node, which starts again
// from the log. The actor is never restarted with empty state.
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

// escalate stops the node after a panic that handlePanic could not end.
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

// close rejects what still waits: the library drops queued messages of a stopped actor silently.
func (r *Ref) close() {
	r.mu.Lock()
	r.closed, r.running = true, false
	r.kind.waiting.Add(-int64(r.waiting))
	var left []Message
	for ; r.waiting > 0; r.waiting-- {
		left = append(left, r.ring[r.head])
		r.head = (r.head + 1) % len(r.ring)
	}
	r.ring, r.lifecycle = nil, nil
	r.mu.Unlock()
	for _, m := range left {
		m.Reject(ErrStopped)
	}
	close(r.stopped)
}
