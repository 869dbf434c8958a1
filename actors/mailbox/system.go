package mailbox

import (
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/tasard/tasard/engine"
)

// Actor is the state of an actor. Its methods run one at a time.
type Actor interface {
	// Receive handles a message. It must not block, and must not wait for another actor.
	Receive(Message)
	// FailsNode reports whether the actor's state may be wrong after Receive has panicked on the message.
	FailsNode(Message) bool
	// RejectAll rejects all open requests of the actor. It is called when the actor or the node stops.
	RejectAll(*engine.Error)
}

// Config configures a System.
type Config struct {
	// Limit is the number of waiting messages at which a mailbox rejects requests.
	Limit int
	// Workers is the number of worker goroutines. With 1, a long Receive in the worker delays other actors.
	Workers int
	// Fail stops the node. It must not block, because it is called while an actor runs.
	Fail func(cause error)
	// Failed returns the error for an actor's open requests. It is called when a panic has stopped the node.
	Failed func(cause error) *engine.Error
}

// ReserveDefault is the room of a mailbox for one-way messages, beyond Config.Limit.
const ReserveDefault = 1024

// Kind is a group of actors with common statistics and limits. The zero value is ready for use.
type Kind struct {
	Name      string
	Reserve   int  // room of each mailbox for one-way messages, beyond Config.Limit; 0 = ReserveDefault
	Transient bool // actors of this kind start and stop while the system runs; Refs does not list them

	waiting  atomic.Int64
	rejected atomic.Uint64
	refs     []*Ref // spawned actors; empty if Transient
}

// Stats counts the waiting messages of one kind of actor.
type Stats struct {
	Kind    string
	Waiting int64 // messages in all mailboxes of the kind
	// WaitingMax is the number of messages in the fullest mailbox; -1 for a Transient kind.
	WaitingMax int64
	Rejected   uint64 // requests rejected with ErrOverloaded because a mailbox was full
}

// Stats returns the counts. For a kind that is not Transient, do not call it concurrently with Spawn.
func (k *Kind) Stats() Stats {
	stats := Stats{Kind: k.Name, Waiting: k.waiting.Load(), Rejected: k.rejected.Load()}
	if k.Transient {
		stats.WaitingMax = -1
	}
	for _, r := range k.refs {
		stats.WaitingMax = max(stats.WaitingMax, int64(r.Waiting()))
	}
	return stats
}

// Refs returns the actors of the kind in the order of Spawn. For a Transient kind it returns nil.
func (k *Kind) Refs() []*Ref { return k.refs }

// System runs actors. Its methods are safe for concurrent use, except that Close must be called last.
type System struct {
	limit      int
	fail       func(error)
	failed     func(error) *engine.Error
	library    *actor.ActorSystem
	dispatcher *dispatcher
}

// NewSystem starts a system. It turns off protoactor's logger, which writes in colour to standard error.
func NewSystem(c Config) *System {
	logger := slog.New(slog.DiscardHandler)
	return &System{
		limit: c.Limit, fail: c.Fail, failed: c.Failed, dispatcher: startDispatcher(c.Workers),
		library: actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return logger })),
	}
}

// Spawn starts an actor. It returns an error if the name is taken.
func (s *System) Spawn(name string, kind *Kind, a Actor) (*Ref, error) {
	r := &Ref{system: s, kind: kind, actor: a, spawned: true, life: &life{stopped: make(chan struct{})}}
	props := actor.PropsFromProducer(
		func() actor.Actor { return (*protoActor)(r) },
		actor.WithMailbox(func() actor.Mailbox { return (*protoActor)(r) }),
	)
	if _, err := s.library.Root.SpawnNamed(props, name); err != nil {
		return nil, fmt.Errorf("spawn actor %s: %w", name, err)
	}
	if !kind.Transient {
		kind.refs = append(kind.refs, r)
	}
	return r, nil
}

// Init makes r the address of the actor a. Unlike Spawn it does not register the actor with protoactor, because
// registration takes more memory than the rest of the actor. The kind must be Transient. The caller must call Stop.
func (s *System) Init(r *Ref, kind *Kind, a Actor) { r.system, r.kind, r.actor = s, kind, a }

// Close ends the system. All actors must be stopped first.
func (s *System) Close() {
	s.dispatcher.stop()
	s.library.Shutdown()
}
