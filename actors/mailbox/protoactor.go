package mailbox

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	cmap "github.com/orcaman/concurrent-map"
)

// The library's registry of processes is 1,024 maps of so many parts each, 32 unless it is told otherwise before the first system is
// made: 2.7 MiB of each node, and nearly half of the time of its start. Here it holds a few dozen actors.
var _ = func() int {
	cmap.SHARD_COUNT = 1
	return cmap.SHARD_COUNT
}()

// protoActor is a Ref as protoactor sees it: an actor.Mailbox, and the actor.Actor behind it. The library brings the
// lifecycle only; messages go straight to the Actor.
type protoActor Ref

// RegisterHandlers is actor.Mailbox; the library's dispatcher is not used.
func (l *protoActor) RegisterHandlers(invoker actor.MessageInvoker, _ actor.Dispatcher) {
	l.library.invoker = invoker
}

// Start is actor.Mailbox: there is nothing to do.
func (l *protoActor) Start() {}

// UserMessageCount is actor.Mailbox.
func (l *protoActor) UserMessageCount() int { return (*Ref)(l).Waiting() }

// PostUserMessage is actor.Mailbox. The library has no message of its own that an actor needs.
func (l *protoActor) PostUserMessage(message any) {
	if m, ok := message.(Message); ok {
		(*Ref)(l).Send(m)
	}
}

// PostSystemMessage is actor.Mailbox: the start and the stop of the actor.
func (l *protoActor) PostSystemMessage(message any) { (*Ref)(l).postLifecycle(message) }

// Receive is actor.Actor. Of the lifecycle only the end matters: actors are complete when they are spawned, and the
// questions that they keep must be answered.
func (l *protoActor) Receive(context actor.Context) {
	if _, stopping := context.Message().(*actor.Stopping); stopping {
		l.actor.Abort(ErrStopped)
	}
}

// failStop is the supervisor: the library's own one would start a failed actor again with empty state.
type failStop struct{ system *System }

// HandleFailure stops the node and the actor.
func (f failStop) HandleFailure(_ *actor.ActorSystem, supervisor actor.Supervisor, child *actor.PID,
	_ *actor.RestartStatistics, reason, message any) {
	f.system.fail(fmt.Errorf("actor %s failed over %T: %v", child.Id, message, reason))
	supervisor.StopChildren(child)
}
