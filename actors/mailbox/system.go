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
	// Receive handles a message. It must not block or ask another actor.
	Receive(Message)
	// Fatal reports whether a panic over the message may leave the actor's state wrong.
	Fatal(Message) bool
	// Abort rejects every request that the actor keeps, because the actor or the node stops.
	Abort(*engine.Error)
}

// Config configures a System.
type Config struct {
	// Limit is how many messages may wait in a mailbox before requests are refused.
	Limit int
	// Workers is how many goroutines run actors that no caller runs. With 1, a long Receive delays all other actors.
	Workers int
	// Fail stops the node. Actors call it: it must not block.
	Fail func(cause error)
	// Failed returns the error of all requests of an actor whose panic has stopped the node.
	Failed func(cause error) *engine.Error
}

// ReserveDefault is the room for one-way messages in a mailbox, beside Config.Limit.
const ReserveDefault = 1024

// Kind groups actors for their statistics and limits. The zero value is ready.
type Kind struct {
	Name      string
	Reserve   int  // room for one-way messages in each mailbox; 0 = ReserveDefault
	Transient bool // there are many actors, and they stop before the system does

	waiting atomic.Int64
	refused atomic.Uint64
	refs    []*Ref // unless Transient; written by Spawn
}

// Stats counts the messages that wait for the actors of one kind.
type Stats struct {
	Kind    string
	Waiting int64 // in all mailboxes of the kind
	// WaitingMax is the most that wait for a single actor. -1 for a Transient kind.
	WaitingMax int64
	Refused    uint64 // requests that were answered ErrOverloaded because a mailbox was full
}

// Stats returns the counts. It must not be called while an actor of a kind that is not Transient is spawned.
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

// Refs returns the actors of the kind, unless it is Transient, in the order in which they were spawned.
func (k *Kind) Refs() []*Ref { return k.refs }

// System runs actors. It owns the library's actor system and the dispatcher.
type System struct {
	limit      int
	fail       func(error)
	failed     func(error) *engine.Error
	library    *actor.ActorSystem
	dispatcher *dispatcher
	supervisor failStop // of all actors, because the library never frees a supervisor

	spawning sync.Mutex // the library's registry of supervisors is not safe for concurrent use
}

// NewSystem starts a system. The logger of the library is off, because it writes in colour to standard error.
func NewSystem(c Config) *System {
	logger := slog.New(slog.DiscardHandler)
	s := &System{
		limit: c.Limit, fail: c.Fail, failed: c.Failed, dispatcher: startDispatcher(c.Workers),
		library: actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return logger })),
	}
	s.supervisor = failStop{s}
	return s
}

// Spawn starts an actor. No other actor may have the same name.
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

// Init makes r the address of an actor that is not registered with the library, because registering costs more than the
// rest of the actor. The owner must retire or stop the actor. The kind must be Transient.
func (s *System) Init(r *Ref, kind *Kind, a Actor) { r.system, r.kind, r.actor = s, kind, a }

// Close ends the system. All actors must have stopped.
func (s *System) Close() {
	s.dispatcher.stop()
	s.library.Shutdown()
}
