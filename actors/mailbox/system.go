package mailbox

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/tasard/tasard/engine"
)

// Actor is the state and the work of one actor. Its methods run one at a time.
type Actor interface {
	// Receive does the work of one message. It never blocks and asks no other actor.
	Receive(Message)
	// Fatal reports that the actor cannot be trusted any more when the work of this message panics.
	Fatal(Message) bool
	// Abort rejects every question that the actor keeps for later: the actor stops, or the node does.
	Abort(*engine.Error)
}

// Config says how a System is to be.
type Config struct {
	// Limit is how many messages may wait in a mailbox before questions are refused.
	Limit int
	// Workers run the actors that no caller runs. With one, the long work of an actor holds up all others.
	Workers int
	// Fail stops the node. It is called by actors: it must not block.
	Fail func(cause error)
	// Failed is the answer to everything that an actor keeps when its panic has stopped the node.
	Failed func(cause error) *engine.Error
}

// ReserveDefault is the room for one-way messages in a mailbox beside the questions: more than there are senders.
const ReserveDefault = 1024

// Kind is what actors of one kind have in common. The zero value is ready.
type Kind struct {
	Name      string
	Reserve   int  // room for one-way messages in each mailbox; 0 = ReserveDefault
	Transient bool // its actors end before the system does, and are too many to look at each

	waiting atomic.Int64
	refused atomic.Uint64
	refs    []*Ref // unless Passing; written by Spawn
}

// Stats is what waits for the actors of one kind.
type Stats struct {
	Kind    string
	Waiting int64 // messages that wait in all mailboxes of the kind; what an idle actor takes at once never waits
	// WaitingMax is how many of them wait for one actor. -1 for a kind that is Transient.
	WaitingMax int64
	Refused    uint64 // questions that were answered ErrOverloaded because a mailbox was full
}

// Stats counts what waits. Not while actors that are not Transient are spawned.
func (k *Kind) Stats() Stats {
	stats := Stats{Kind: k.Name, Waiting: k.waiting.Load(), Refused: k.refused.Load()}
	if k.Transient {
		stats.WaitingMax = -1
	}
	for _, r := range k.refs {
		stats.WaitingMax = max(stats.WaitingMax, int64(r.Waiting()))
	}
	return stats
}

// Refs are the actors of the kind, unless it is Transient; in the order in which they were spawned. Not while some are.
func (k *Kind) Refs() []*Ref { return k.refs }

// System runs actors. It owns the library's actor system and the dispatcher.
type System struct {
	limit      int
	fail       func(error)
	failed     func(error) *engine.Error
	library    *actor.ActorSystem
	dispatcher *dispatcher
	supervisor failStop // one for all: the library keeps each that it sees for ever

	spawning sync.Mutex // the library's registry of supervisors is not safe for concurrent use
}

// NewSystem starts a system, which logs nothing by itself: the library's own logger writes in colour to the standard
// error output.
func NewSystem(c Config) *System {
	quiet := slog.New(slog.DiscardHandler)
	s := &System{
		limit: c.Limit, fail: c.Fail, failed: c.Failed, dispatcher: startDispatcher(c.Workers),
		library: actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet })),
	}
	s.supervisor = failStop{s}
	return s
}

// Spawn starts an actor. Its name must be free.
func (s *System) Spawn(name string, kind *Kind, a Actor) (*Ref, error) {
	r := &Ref{system: s, kind: kind, actor: a, library: &registration{}}
	props := actor.PropsFromProducer(
		func() actor.Actor { return (*protoActor)(r) },
		actor.WithMailbox(func() actor.Mailbox { return (*protoActor)(r) }),
		actor.WithGuardian(s.supervisor),
	)
	s.spawning.Lock()
	defer s.spawning.Unlock()
	pid, err := s.library.Root.SpawnNamed(props, name)
	if err != nil {
		return nil, fmt.Errorf("spawn actor %s: %w", name, err)
	}
	r.library.pid = pid
	if !kind.Transient {
		kind.refs = append(kind.refs, r)
	}
	return r, nil
}

// Init makes r the address of an actor that the library does not know: its registry and its copies cost more than the rest of the
// actor. Its owner sends it the first message, and retires or stops it. The kind is Transient.
func (s *System) Init(r *Ref, kind *Kind, a Actor) { r.system, r.kind, r.actor = s, kind, a }

// Close ends the system after all actors have stopped.
func (s *System) Close() {
	s.dispatcher.stop()
	s.library.Shutdown()
}
