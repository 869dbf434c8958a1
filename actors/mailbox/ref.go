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
	lifecycleMax  = 16  // lifecycle messages (such as Stop) that may wait in a mailbox; protoactor sends three to an actor
	callerTurnMax = 64  // messages of other callers that a caller handles after its own
	workerTurnMax = 256 // messages of one actor that a worker handles before it turns to the next actor
	ringMin       = 8   // initial length of Ref.ring, the queue of messages
)

// Ref is the address of an actor, and has its mailbox. At any time, at most one goroutine runs the actor: that of a
// caller, or a worker of the dispatcher. Messages that arrive meanwhile wait in a bounded queue. The actor receives the
// messages of one sender in order. After the actor has stopped, every message is rejected.
type Ref struct {
	system *System
	kind   *Kind
	actor  Actor

	mu      sync.Mutex
	running bool // a goroutine runs the actor, or the actor is in the queue of the dispatcher
	paused  bool // protoactor has paused the actor, after a panic over a lifecycle message
	closed  bool
	spawned bool // System.Spawn has registered the actor with protoactor, which runs it; constant
	waiting int32
	head    int32
	ring    *[]Message // the queue; nil until the first message has to wait

	life *life // nil: the actor is not registered with protoactor (System.Init), and does not stop yet
	next *Ref  // next actor in the dispatcher's queue; guarded by dispatcher.mu
}

// life is the part of a Ref that an actor needs to stop, and one that protoactor knows from its start.
type life struct {
	messages []any         // protoactor's messages, for example Stop; they are handled before all others
	library  *registration // nil: the actor is not registered with protoactor
	stopped  chan struct{} // closed after the actor has stopped and all its messages are answered
}

// library returns the registration with protoactor, or nil.
func (r *Ref) library() *registration {
	if !r.spawned {
		return nil
	}
	return r.life.library
}

type registration struct {
	invoker actor.MessageInvoker // handles lifecycle messages
	pid     *actor.PID
}

// Send sends a message, or rejects it. If the actor is idle and the message is a request, Send runs the actor before it
// returns. A one-way message is handled by a worker, so that its sender does not do the work of another actor.
func (r *Ref) Send(m Message) {
	isRequest := m.IsRequest()
	if err := r.post(m, isRequest, isRequest); err != nil {
		r.reject(m, isRequest, err)
	}
}

// Deliver is like Send, but also runs an idle actor to handle a one-way message, instead of leaving that to a worker.
func (r *Ref) Deliver(m Message) {
	isRequest := m.IsRequest()
	if err := r.post(m, isRequest, true); err != nil {
		r.reject(m, isRequest, err)
	}
}

// Busy reports whether the actor is running or has messages to handle.
func (r *Ref) Busy() bool {
	if !r.mu.TryLock() {
		return true
	}
	defer r.mu.Unlock()
	return r.running
}

// post accepts a message, or returns an error with which the caller must reject it. If direct is true and the actor is
// idle, post runs the actor.
func (r *Ref) post(m Message, isRequest, direct bool) *engine.Error {
	r.mu.Lock()
	if err := r.checkRoom(isRequest); err != nil {
		r.mu.Unlock()
		return err
	}
	idle := !r.running && !r.paused
	r.running = r.running || idle
	first := idle && direct && r.waiting == 0 && (r.life == nil || len(r.life.messages) == 0)
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

// Stop stops the actor and waits until all its messages are answered.
func (r *Ref) Stop() {
	r.BeginStop()
	r.Wait()
}

// BeginStop makes the actor stop, without waiting for it. Queued messages are rejected.
func (r *Ref) BeginStop() {
	if library := r.library(); library != nil {
		r.system.library.Root.Stop(library.pid)
		return
	}
	r.postLifecycle(&actor.Stop{})
}

func (r *Ref) postLifecycle(message any) {
	r.mu.Lock()
	if r.life == nil {
		r.life = &life{}
	}
	if r.closed || len(r.life.messages) >= lifecycleMax {
		full := !r.closed
		r.mu.Unlock()
		if full {
			r.system.fail(fmt.Errorf("a mailbox has no room for the lifecycle message %T", message))
		}
		return
	}
	if r.life.stopped == nil {
		r.life.stopped = make(chan struct{})
	}
	r.life.messages = append(r.life.messages, message)
	idle := !r.running
	r.running = true
	r.mu.Unlock()
	if idle {
		r.run(callerTurnMax)
	}
}

// Wait waits until the actor has stopped and all its messages are answered. BeginStop must have been called.
func (r *Ref) Wait() { <-r.life.stopped }

// Waiting returns the number of queued messages.
func (r *Ref) Waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return int(r.waiting)
}

// checkRoom returns nil if the mailbox can accept a message, else the reason.
func (r *Ref) checkRoom(isRequest bool) *engine.Error {
	switch {
	case r.closed:
		return ErrStopped
	case isRequest && int(r.waiting) >= r.system.limit, int(r.waiting) >= r.roomMax():
		return ErrOverloaded
	}
	return nil
}

// roomMax returns how many requests and one-way messages together may wait in the mailbox.
func (r *Ref) roomMax() int { return r.system.limit + cmp.Or(r.kind.Reserve, ReserveDefault) }

// reject rejects a message with an error of checkRoom. If there was no room for a one-way message, it stops the node.
func (r *Ref) reject(m Message, isRequest bool, err *engine.Error) {
	switch {
	case err != ErrOverloaded:
	case isRequest:
		r.kind.rejected.Add(1)
	default:
		r.system.fail(fmt.Errorf("a mailbox has no room for the one-way message %T", m))
	}
	m.Reject(err)
}

// enqueue adds a message to the queue. The caller must have called checkRoom.
func (r *Ref) enqueue(m Message) {
	if r.ring == nil {
		r.ring = new([]Message)
	}
	if ring := *r.ring; int(r.waiting) == len(ring) {
		larger := make([]Message, min(max(ringMin, 2*len(ring)), r.roomMax()))
		n := copy(larger, ring[r.head:])
		copy(larger[n:], ring[:r.head])
		*r.ring, r.head = larger, 0
	}
	ring := *r.ring
	ring[int(r.head+r.waiting)%len(ring)] = m
	r.waiting++
	r.kind.waiting.Add(1)
}

// run handles queued messages. If it has handled messagesMax of them, it hands the actor to the dispatcher. The caller
// must have set running.
func (r *Ref) run(messagesMax int) {
	for range messagesMax {
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

// dequeue removes the next message or lifecycle message. If there is none, it clears running and returns false.
func (r *Ref) dequeue() (m Message, lifecycle any, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.life != nil && len(r.life.messages) > 0:
		lifecycle, r.life.messages = r.life.messages[0], r.life.messages[1:]
		return nil, lifecycle, true
	case r.waiting > 0 && !r.paused:
		m = r.takeFirst()
		r.kind.waiting.Add(-1)
		return m, nil, true
	}
	r.running = false
	return nil, nil, false
}

// takeFirst removes the first message of the queue, which is not empty.
func (r *Ref) takeFirst() Message {
	ring := *r.ring
	m := ring[r.head]
	ring[r.head] = nil
	r.head = (r.head + 1) % int32(len(ring))
	r.waiting--
	return m
}

// deliver calls Actor.Receive, for a spawned actor through protoactor, and recovers panics. It drops an abandoned
// message.
func (r *Ref) deliver(m Message) {
	if m.Abandoned() {
		m.Reject(ErrExpired)
		return
	}
	defer r.recoverPanic(m)
	if library := r.library(); library != nil {
		library.invoker.InvokeUserMessage(m)
		return
	}
	r.actor.Receive(m)
}

func (r *Ref) recoverPanic(m Message) {
	if reason := recover(); reason != nil {
		defer r.escalate(m)
		r.handlePanic(m, reason)
	}
}

// handlePanic rejects the message over which the actor panicked. It stops the node too if Actor.FailsNode says that the
// actor's state may now be wrong. The next start of the node restores the state from the log.
func (r *Ref) handlePanic(m Message, reason any) {
	cause := fmt.Errorf("panic over %T: %v\n%s", m, reason, debug.Stack())
	if !r.actor.FailsNode(m) {
		m.Reject(&engine.Error{Code: engine.CodeInternalError, Message: "an internal error", Cause: cause})
		return
	}
	r.system.fail(cause)
	stopped := r.system.failed(cause)
	r.actor.RejectAll(stopped)
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
		library := r.library()
		if library == nil {
			r.actor.RejectAll(ErrStopped)
			return
		}
		library.invoker.InvokeSystemMessage(lifecycle)
	}
}

// escalate is deferred. It stops the node after a panic in handlePanic or over a lifecycle message.
func (r *Ref) escalate(message any) {
	switch reason, library := recover(), r.library(); {
	case reason == nil:
	case library == nil:
		r.system.fail(fmt.Errorf("an actor of kind %s failed over %T: %v", r.kind.Name, message, reason))
	default:
		library.invoker.EscalateFailure(reason, message)
	}
}

func (r *Ref) pause(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.paused = on
}

// close closes the mailbox and rejects all queued messages.
func (r *Ref) close() {
	r.mu.Lock()
	r.closed, r.running = true, false
	r.kind.waiting.Add(-int64(r.waiting))
	var remaining []Message
	for r.waiting > 0 {
		remaining = append(remaining, r.takeFirst())
	}
	r.ring, r.life.messages = nil, nil
	r.mu.Unlock()
	for _, m := range remaining {
		m.Reject(ErrStopped)
	}
	close(r.life.stopped)
}
