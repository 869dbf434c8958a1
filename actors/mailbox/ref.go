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
	callerTurnMax = 64  // messages of other callers that a caller handles after its own
	workerTurnMax = 256 // messages that a worker handles for one actor before it turns to the next
	ringMin       = 8   // initial length of Ref.ring
)

// Ref is the address of an actor and contains its mailbox. At most one goroutine runs the actor at a time: a caller's,
// or a worker of the dispatcher. Messages that arrive meanwhile wait in a bounded queue. The actor receives one
// sender's messages in order. A stopped actor rejects every message.
type Ref struct {
	system *System
	kind   *Kind
	actor  Actor

	mu      sync.Mutex
	running bool // a goroutine runs the actor, or the actor is in the queue of the dispatcher
	closed  bool
	spawned bool       // System.Spawn has registered the actor with protoactor; constant
	waiting int32      // number of queued messages
	head    int32      // index of the first queued message in ring
	ring    *[]Message // the queue; nil until the first message has to wait

	life *life // nil: not registered with protoactor (System.Init), and not stopping
	next *Ref  // next actor in the dispatcher's queue; guarded by dispatcher.mu
}

// life holds the fields that only spawned and stopping actors need.
type life struct {
	invoker  actor.MessageInvoker // protoactor's invoker; nil: the actor is not registered
	stopping bool                 // the actor stops before the next message
	stopped  chan struct{}        // closed after the actor has stopped and all its messages are answered
}

// Send sends or rejects a message. If the actor is idle, Send runs it to handle a request. A worker handles one-way
// messages, so the sender does not do another actor's work.
func (r *Ref) Send(m Message) {
	isRequest := m.IsRequest()
	r.send(m, isRequest, isRequest)
}

// Deliver is like Send, but runs an idle actor for a one-way message too.
func (r *Ref) Deliver(m Message) { r.send(m, m.IsRequest(), true) }

// Busy reports whether the actor is running or has messages to handle.
func (r *Ref) Busy() bool {
	if !r.mu.TryLock() {
		return true
	}
	defer r.mu.Unlock()
	return r.running
}

// send implements Send and Deliver. If direct is true, it runs an idle actor itself; otherwise a worker does.
func (r *Ref) send(m Message, isRequest, direct bool) {
	r.mu.Lock()
	if err := r.checkRoom(isRequest); err != nil {
		r.mu.Unlock()
		r.reject(m, isRequest, err)
		return
	}
	idle := !r.running
	r.running = true
	if !idle || !direct {
		r.enqueue(m)
	}
	r.mu.Unlock()
	switch {
	case !idle:
	case direct:
		r.deliver(m)
		r.run(callerTurnMax)
	default:
		r.system.dispatcher.add(r)
	}
}

// Stop stops the actor and waits until all its messages are answered.
func (r *Ref) Stop() {
	r.BeginStop()
	r.Wait()
}

// BeginStop tells the actor to stop and returns at once. Queued messages are rejected.
func (r *Ref) BeginStop() {
	r.mu.Lock()
	if r.life == nil {
		r.life = &life{stopped: make(chan struct{})}
	}
	idle := !r.running && !r.closed
	r.running, r.life.stopping = r.running || idle, true
	r.mu.Unlock()
	if idle {
		r.run(callerTurnMax)
	}
}

// Wait blocks until the actor has stopped and all its messages are answered. Call BeginStop first.
func (r *Ref) Wait() { <-r.life.stopped }

// Waiting returns the number of queued messages.
func (r *Ref) Waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return int(r.waiting)
}

// checkRoom returns nil if the mailbox can accept a message, else the reason for rejection.
func (r *Ref) checkRoom(isRequest bool) *engine.Error {
	switch {
	case r.closed:
		return ErrStopped
	case isRequest && int(r.waiting) >= r.system.limit, int(r.waiting) >= r.roomMax():
		return ErrOverloaded
	}
	return nil
}

// roomMax returns the capacity of the mailbox: requests and one-way messages together.
func (r *Ref) roomMax() int { return r.system.limit + cmp.Or(r.kind.Reserve, ReserveDefault) }

// reject rejects a message with an error from checkRoom. A one-way message without room stops the node.
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

// enqueue adds a message to the queue. Call checkRoom first.
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

// run handles up to messagesMax queued messages. If more may be waiting, it adds the actor to the dispatcher's queue.
// The caller must have set running.
func (r *Ref) run(messagesMax int) {
	for range messagesMax {
		m, stop := r.dequeue()
		switch {
		case stop:
			r.rejectOpen()
			r.close()
			return
		case m == nil:
			return
		}
		r.deliver(m)
	}
	r.system.dispatcher.add(r)
}

// dequeue removes the next message. It reports stop if the actor is stopping, and clears running if the queue is empty.
func (r *Ref) dequeue() (m Message, stop bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.life != nil && r.life.stopping:
		return nil, true
	case r.waiting > 0:
		r.kind.waiting.Add(-1)
		return r.takeFirst(), false
	}
	r.running = false
	return nil, false
}

// takeFirst removes the first message of a non-empty queue.
func (r *Ref) takeFirst() Message {
	ring := *r.ring
	m := ring[r.head]
	ring[r.head] = nil
	r.head = (r.head + 1) % int32(len(ring))
	r.waiting--
	return m
}

// deliver calls Actor.Receive (through protoactor for a spawned actor) and recovers panics. It drops an abandoned
// message.
func (r *Ref) deliver(m Message) {
	if m.Abandoned() {
		m.Reject(ErrExpired)
		return
	}
	defer r.recoverPanic(m)
	if r.spawned {
		r.life.invoker.InvokeUserMessage(m)
		return
	}
	r.actor.Receive(m)
}

func (r *Ref) recoverPanic(m Message) {
	if reason := recover(); reason != nil {
		defer r.failOnPanic(m)
		r.handlePanic(m, reason)
	}
}

// handlePanic rejects the message after a panic of the actor. If the actor's state may now be wrong (Actor.FailsNode),
// it also stops the node; the next start restores the state from the log.
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

// failOnPanic must be deferred. It stops the node after a panic in RejectAll or in protoactor.
func (r *Ref) failOnPanic(message any) {
	if reason := recover(); reason != nil {
		r.system.fail(fmt.Errorf("an actor of kind %s failed over %T: %v", r.kind.Name, message, reason))
	}
}

// rejectOpen makes the actor reject its open requests, and removes it from protoactor's registry.
func (r *Ref) rejectOpen() {
	stop := &actor.Stop{}
	defer r.failOnPanic(stop)
	r.actor.RejectAll(ErrStopped)
	if r.spawned {
		r.life.invoker.InvokeSystemMessage(stop)
	}
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
	r.ring = nil
	r.mu.Unlock()
	for _, m := range remaining {
		m.Reject(ErrStopped)
	}
	close(r.life.stopped)
}
