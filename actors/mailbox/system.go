package mailbox

import (
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/tasard/tasard/engine"
)

// Actor is the interface that the state of an actor implements. Its methods run one at a time.
type Actor interface {
	// Receive handles a message. It must not block, and must not wait for the answer of another actor.
	Receive(Message)
	// FailsNode reports whether the actor's state may be wrong after Receive has panicked over the message.
	FailsNode(Message) bool
	// RejectAll is called when the actor or the node stops. It rejects every request that the actor keeps.
	RejectAll(*engine.Error)
}

// Config configures a System.
type Config struct {
	// Limit is how many messages may wait in a mailbox. At this number the mailbox rejects requests.
	Limit int
	// Workers is the number of worker goroutines. If it is 1, a long Receive in the worker delays other actors.
	Workers int
	// Fail stops the node. It must not block, because the goroutine that runs an actor calls it.
	Fail func(cause error)
	// Failed is called when a panic has stopped the node. It returns the error with which the actor rejects its requests.
	Failed func(cause error) *engine.Error
}

// ReserveDefault is how many one-way messages may wait in a mailbox in addition to Config.Limit.
const ReserveDefault = 1024

// Kind is a group of actors with common statistics and limits. The zero value is ready for use.
type Kind struct {
	Name      string
	Reserve   int  // one-way messages that may wait in each mailbox in addition to Config.Limit; 0 = ReserveDefault
	Transient bool // actors of this kind start and stop while the system runs; Refs does not list them

	waiting  atomic.Int64
	rejected atomic.Uint64
	refs     []*Ref // actors that Spawn has started; empty if Transient
}

// Stats counts the messages that wait for the actors of one kind.
type Stats struct {
	Kind    string
	Waiting int64 // messages in all mailboxes of the kind
	// WaitingMax is the number of messages in the fullest mailbox. It is -1 for a Transient kind.
	WaitingMax int64
	Rejected   uint64 // requests rejected with ErrOverloaded because a mailbox was full
}

// Stats returns the counts. Unless the kind is Transient, Stats must not run concurrently with Spawn of an actor of
// this kind.
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

// System runs actors. Its methods are safe for concurrent use. Only Close must not run concurrently with another
// method.
type System struct {
	limit      int
	fail       func(error)
	failed     func(error) *engine.Error
	library    *actor.ActorSystem
	dispatcher *dispatcher
}

// NewSystem starts a system. It turns off the logger of the library protoactor-go, which writes in colour to standard
// error.
func NewSystem(c Config) *System {
	logger := slog.New(slog.DiscardHandler)
	return &System{
		limit: c.Limit, fail: c.Fail, failed: c.Failed, dispatcher: startDispatcher(c.Workers),
		library: actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return logger })),
	}
}

// Spawn starts an actor. It returns an error if another actor of the system has the same name.
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
// registration costs more than the rest of the actor. The caller must end the actor with Stop. The kind must be
// Transient.
func (s *System) Init(r *Ref, kind *Kind, a Actor) { r.system, r.kind, r.actor = s, kind, a }

// Close ends the system. All actors must have stopped before.
func (s *System) Close() {
	s.dispatcher.stop()
	s.library.Shutdown()
}
