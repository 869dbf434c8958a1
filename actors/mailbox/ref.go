package mailbox

import (
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
	limit   int // questions are refused when this many messages wait
	reserve int // places for one-way messages beside them
	system  *System
	kind    *Kind
	actor   Actor                // called directly: the way through the library costs as much again as most messages
	invoker actor.MessageInvoker // of lifecycle messages
	pid     *actor.PID
	stopped chan struct{} // closed after the actor has stopped and all its messages are answered

	mu        sync.Mutex
	lifecycle []any // messages of the library, before all others
	ring      []Message
	head      int
	waiting   int
	running   bool // a goroutine runs the actor, or a worker is about to
	paused    bool // by the library, after a failure in a lifecycle message
	closed    bool

	next *Ref // in the dispatcher's queue; guarded by its lock
}

// Send takes a message in, or rejects it. A question to an idle actor is answered when it returns; a one-way message
// is handled by a worker, so that its sender never does another actor's work.
func (r *Ref) Send(m Message) {
	if m == nil {
		panic("mailbox: send of a nil message")
	}
	asked := m.Asked()
	r.mu.Lock()
	if refusal := r.refusal(asked); refusal != nil {
		r.mu.Unlock()
		r.refuse(m, asked, refusal)
		return
	}
	idle := !r.running && !r.paused
	r.running = r.running || idle
	direct := idle && asked && r.waiting == 0 && len(r.lifecycle) == 0
	if !direct {
		r.enqueue(m)
	}
	r.mu.Unlock()
	switch {
	case direct:
		r.deliver(m)
		r.run(callerTurnMax)
	case idle && asked:
		r.run(callerTurnMax)
	case idle:
		r.system.dispatcher.add(r)
	}
}

// Stop ends the actor and waits until all its messages are answered.
func (r *Ref) Stop() {
	r.BeginStop()
	r.Wait()
}

// BeginStop tells the actor to end, ahead of the messages that wait.
func (r *Ref) BeginStop() { r.system.library.Root.Stop(r.pid) }

// Wait returns when the actor has ended and all its messages are answered.
func (r *Ref) Wait() { <-r.stopped }

// Idle reports that the actor has done all that was sent to it and does nothing now. The only sender to an actor,
// which is also the only one that may stop it, may then touch its state until it sends the next message.
func (r *Ref) Idle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.running && r.waiting == 0 && len(r.lifecycle) == 0
}

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
	case asked && r.waiting >= r.limit, r.waiting >= r.limit+r.reserve:
		return ErrOverloaded
	}
	return nil
}

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
		larger := make([]Message, min(2*len(r.ring), r.limit+r.reserve))
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
		r.invoker.InvokeSystemMessage(lifecycle)
	}
}

func (r *Ref) escalate(message any) {
	if reason := recover(); reason != nil {
		r.invoker.EscalateFailure(reason, message)
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
