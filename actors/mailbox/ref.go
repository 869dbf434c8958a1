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
	systemMax     = 16  // lifecycle messages that may wait; an actor gets three in its life
	callerTurnMax = 64  // messages that a caller handles for others after its own
	workerTurnMax = 256 // messages that a worker handles before other actors get a turn
	ringMin       = 8   // places that a ring begins with; it grows to its limit and no further
)

// Ref is the address of an actor and its mailbox: a bounded queue, and the right to run the actor, which one goroutine
// has at a time, a caller or a worker of the dispatcher. Messages of one sender stay in order. After the actor has
// stopped every message is rejected.
type Ref struct {
	system *System
	kind   *Kind
	actor  Actor // called directly: the way through the library costs as much again as most messages

	mu      sync.Mutex
	running bool // a goroutine runs the actor, or a worker is about to
	paused  bool // by the library, after a failure in a lifecycle message
	closed  bool
	waiting int
	head    int
	ring    []Message // made when a message has to wait

	lifecycle []any         // messages of the library, before all others
	library   *registration // nil: the library does not know the actor
	stopped   chan struct{} // closed after the actor has stopped and all its messages are answered

	next *Ref // in the dispatcher's queue; guarded by its lock
}

// registration is what the library knows of an actor.
type registration struct {
	invoker actor.MessageInvoker // of lifecycle messages
	pid     *actor.PID
}

// Send takes a message in, or rejects it. A question to an idle actor is answered when it returns; a one-way message
// is handled by a worker, so that its sender never does another actor's work.
func (r *Ref) Send(m Message) {
	asked := m.Asked()
	if refusal := r.post(m, asked, asked); refusal != nil {
		r.refuse(m, asked, refusal)
	}
}

// Deliver is Send by the owner of the actor, which does the work of a one-way message itself when the actor is idle.
func (r *Ref) Deliver(m Message) {
	asked := m.Asked()
	if refusal := r.post(m, asked, true); refusal != nil {
		r.refuse(m, asked, refusal)
	}
}

// TrySend is Send, but reports false instead of rejecting the message when the actor was retired or has stopped.
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

// sendIdle has an idle actor answer a question at once. False: it is busy, or has stopped.
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

// post takes a message in, or returns why it cannot. The actor is run by the caller when it is idle and direct is true.
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

// Retire ends an idle actor at once, when done agrees: it has no message, and gets none any more. Its state then belongs to
// the caller. done may look at the state; no message comes in meanwhile. Only for actors that the library does not know.
func (r *Ref) Retire(done func() bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.running || r.waiting > 0 || len(r.lifecycle) > 0 || !done() {
		return false
	}
	r.closed = true
	return true
}

// Stop ends the actor and waits until all its messages are answered.
func (r *Ref) Stop() {
	r.BeginStop()
	r.Wait()
}

// BeginStop tells the actor to end, ahead of the messages that wait.
func (r *Ref) BeginStop() {
	if r.library != nil {
		r.system.library.Root.Stop(r.library.pid)
		return
	}
	r.postLifecycle(&actor.Stop{})
}

// postLifecycle takes in the start or the stop of the actor, ahead of the messages that wait.
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

// Wait returns when the actor has ended and all its messages are answered.
func (r *Ref) Wait() { <-r.stopped }

// Waiting is the number of messages that wait.
func (r *Ref) Waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waiting
}

// StartJob does long work of the actor's beside it, on a goroutine of its own; one processor is left for callers. The work
// calls pause every fraction of a millisecond, so that callers go first (see package yield). An actor may have one such
// job at a time, and only while it lives; System.Close waits for it.
func (r *Ref) StartJob(work func(pause func())) { r.system.dispatcher.startJob(work) }

// refusal is why a message cannot be taken in, nil when it can.
func (r *Ref) refusal(asked bool) *engine.Error {
	switch {
	case r.closed:
		return ErrStopped
	case asked && r.waiting >= r.system.limit, r.waiting >= r.roomMax():
		return ErrOverloaded
	}
	return nil
}

// roomMax is how many messages a mailbox holds, the reserve for one-way messages included.
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

// enqueue stores a message; the caller has checked that there is room.
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

// run runs the actor until nothing waits, or hands the rest to the dispatcher: a caller must not serve others for
// ever. Its caller has the right to run.
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

// dequeue takes the next message, or one of the lifecycle; without either it gives the right to run back.
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

// deliver hands a message to the actor. A panic of the actor's own work ends in guard; what guard cannot end is a
// failure of the actor as a whole, and its supervisor stops the node.
func (r *Ref) deliver(m Message) {
	if m.Abandoned() {
		m.Reject(ErrExpired)
		return
	}
	defer r.recoverPanic(m)
	r.actor.Receive(m)
}

// recoverPanic ends a panic.
func (r *Ref) recoverPanic(m Message) {
	if reason := recover(); reason != nil {
		defer r.escalate(m)
		r.handlePanic(m, reason)
	}
}

// handlePanic rejects the one message when its work changes nothing: what was read is immutable. Otherwise it stops the
// node, which starts again from the log. The actor itself is never started again with empty state.
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

// escalate ends a panic that nothing else has ended: the node stops.
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

// close rejects what still waits: the library drops queued messages of a stopped actor without a word.
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
