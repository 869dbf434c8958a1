package actors

import (
	"fmt"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/tasard/tasard/engine"
)

// letter is a message between actors of this package. There are two kinds.
//
// A question has an asker who waits. It is refused when the mailbox is full, and an idle actor answers it
// on the asker's own goroutine. A fact (committed, written, a share of a cut) is never refused: room is
// kept for it, because the senders of facts have a bounded number of them under way. An idle actor takes
// it in on a goroutine of relief, so that no sender of facts ever does another actor's work.
type letter interface {
	// question tells the kind.
	question() bool
	// abandoned reports that nobody waits any more, so that the work can be saved.
	abandoned() bool
	// settle answers whoever waits, in place of the actor: overflow, stop, panic, no such actor.
	settle(*engine.Error)
}

// fact is what every fact has in common: nobody waits for it.
type fact struct{}

func (fact) question() bool       { return false }
func (fact) abandoned() bool      { return false }
func (fact) settle(*engine.Error) {}

const (
	factsMax       = 1024 // places kept for facts beside the questions: more than there are owners of state
	systemMax      = 16   // lifecycle messages that may wait; an actor gets three in its life
	turnMax        = 64   // letters that an asker serves for others after its own
	reliefTurnMax  = 256  // letters that relief serves before other actors get a turn
	mailboxRingMin = 8    // places that a ring begins with; it grows to its limit and no further
)

// mailbox is the bounded queue of one actor and the right to run it, which one goroutine has at a time:
// an asker, or one of relief. Letters of one sender stay in order. After the actor has stopped every letter
// is settled.
type mailbox struct {
	limit    int // questions are refused when this many letters wait
	facts    int // places kept for facts beside them
	relief   *relief
	fault    func(error)          // what must never happen did: stops the node
	invoker  actor.MessageInvoker // of lifecycle messages
	host     *host                // of letters: the way through the library costs as much again as most of them
	counts   *boxCounts           // of all actors of the kind
	finished chan struct{}        // closed after the actor has stopped and all its letters are settled

	mu      sync.Mutex
	system  []any // lifecycle messages of the library, before all letters
	ring    []letter
	head    int
	waiting int
	running bool // somebody runs the actor or relief is about to
	paused  bool // by the library, after a failure in a lifecycle message
	closed  bool

	next *mailbox // in relief's list; guarded by its lock
}

func newMailbox(limit int, r *relief, fault func(error), h *host) *mailbox {
	return &mailbox{
		limit: limit, facts: factsMax, relief: r, fault: fault, host: h, finished: make(chan struct{}), ring: make([]letter, mailboxRingMin),
	}
}

// RegisterHandlers is the library's; its dispatcher is not used.
func (m *mailbox) RegisterHandlers(invoker actor.MessageInvoker, _ actor.Dispatcher) {
	m.invoker = invoker
}

// Start is the library's: nothing is left to do.
func (m *mailbox) Start() {}

// UserMessageCount is the number of letters that wait.
func (m *mailbox) UserMessageCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.waiting
}

// PostUserMessage is the library's. Nobody sends anything but letters, and nobody waits for anything else.
func (m *mailbox) PostUserMessage(message any) {
	if l, ok := message.(letter); ok {
		m.post(l)
	}
}

// post takes a letter in, or settles it. The asker of an idle actor has been answered when it returns.
func (m *mailbox) post(l letter) {
	asked := l.question()
	m.mu.Lock()
	if refusal := m.refusal(asked); refusal != nil {
		m.mu.Unlock()
		switch {
		case refusal != errOverflow:
		case asked:
			m.counts.refused.Add(1)
		default:
			m.fault(fmt.Errorf("a mailbox has no room for the fact %T", l))
		}
		l.settle(refusal)
		return
	}
	idle := !m.running && !m.paused
	m.running = m.running || idle
	direct := idle && asked && m.waiting == 0 && len(m.system) == 0
	if !direct {
		m.push(l)
	}
	m.mu.Unlock()
	switch {
	case direct:
		m.deliver(l)
		m.turn(turnMax)
	case idle && asked:
		m.turn(turnMax)
	case idle:
		m.relief.take(m)
	}
}

// quiet reports that the actor has done all that was sent to it and does nothing now. Whoever alone sends
// to it, lifecycle included, may then look at its state: nobody touches that before the next letter.
func (m *mailbox) quiet() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.running && m.waiting == 0 && len(m.system) == 0
}

// refusal is why a letter cannot be taken in, nil when it can.
func (m *mailbox) refusal(asked bool) *engine.Error {
	switch {
	case m.closed:
		return errStopped
	case asked && m.waiting >= m.limit, m.waiting >= m.limit+m.facts:
		return errOverflow
	}
	return nil
}

// push stores a letter; the caller has checked that there is room.
func (m *mailbox) push(l letter) {
	if m.waiting == len(m.ring) {
		larger := make([]letter, min(2*len(m.ring), m.limit+m.facts))
		n := copy(larger, m.ring[m.head:])
		copy(larger[n:], m.ring[:m.head])
		m.ring, m.head = larger, 0
	}
	m.ring[(m.head+m.waiting)%len(m.ring)] = l
	m.waiting++
	m.counts.waiting.Add(1)
}

// PostSystemMessage is the library's: the start and the stop of the actor.
func (m *mailbox) PostSystemMessage(message any) {
	m.mu.Lock()
	if m.closed || len(m.system) >= systemMax {
		full := !m.closed
		m.mu.Unlock()
		if full {
			m.fault(fmt.Errorf("a mailbox has no room for the lifecycle message %T", message))
		}
		return
	}
	m.system = append(m.system, message)
	idle := !m.running
	m.running = true
	m.mu.Unlock()
	if idle {
		m.turn(turnMax)
	}
}

// turn runs the actor until nothing waits, or hands the rest to relief: an asker must not serve others
// for ever. The caller has the right to run.
func (m *mailbox) turn(letters int) {
	for range letters {
		l, message, ok := m.pull()
		if !ok {
			return
		}
		if message == nil {
			m.deliver(l)
			continue
		}
		m.manage(message)
		if _, stop := message.(*actor.Stop); stop {
			m.close()
			return
		}
	}
	m.relief.take(m)
}

// pull takes the next letter, or a message of the lifecycle; without either it gives the right to run back.
func (m *mailbox) pull() (l letter, message any, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case len(m.system) > 0:
		message, m.system = m.system[0], m.system[1:]
		return nil, message, true
	case m.waiting > 0 && !m.paused:
		l = m.ring[m.head]
		m.ring[m.head] = nil
		m.head = (m.head + 1) % len(m.ring)
		m.waiting--
		m.counts.waiting.Add(-1)
		return l, nil, true
	}
	m.running = false
	return nil, nil, false
}

// deliver hands a letter to the actor. Panics of the actor's own work end in guard; what that can't end is a
// failure of the actor as a whole, and its supervisor stops the node.
func (m *mailbox) deliver(l letter) {
	if l.abandoned() {
		l.settle(errExpired)
		return
	}
	defer m.guard(l)
	m.host.resident.receive(l)
}

// guard ends a panic.
func (m *mailbox) guard(l letter) {
	if reason := recover(); reason != nil {
		defer m.escalate(l)
		m.host.contain(l, reason)
	}
}

func (m *mailbox) manage(message any) {
	defer m.escalate(message)
	switch message.(type) {
	case *actor.SuspendMailbox:
		m.pause(true)
	case *actor.ResumeMailbox:
		m.pause(false)
	default:
		m.invoker.InvokeSystemMessage(message)
	}
}

func (m *mailbox) escalate(message any) {
	if reason := recover(); reason != nil {
		m.invoker.EscalateFailure(reason, message)
	}
}

func (m *mailbox) pause(on bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.paused = on
}

// close settles what still waits. The library drops queued messages of a stopped actor without a word.
func (m *mailbox) close() {
	m.mu.Lock()
	m.closed, m.running = true, false
	m.counts.waiting.Add(-int64(m.waiting))
	var left []letter
	for ; m.waiting > 0; m.waiting-- {
		left = append(left, m.ring[m.head])
		m.head = (m.head + 1) % len(m.ring)
	}
	m.ring, m.system = nil, nil
	m.mu.Unlock()
	for _, l := range left {
		l.settle(errStopped)
	}
	close(m.finished)
}
