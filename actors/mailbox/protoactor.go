package mailbox

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	cmap "github.com/orcaman/concurrent-map"
)

// protoactor's process registry is 1,024 maps of SHARD_COUNT parts, by default 32: 2.7 MiB and nearly half of the
// start-up time of each node. Here it holds a few dozen actors.
var _ = func() int {
	cmap.SHARD_COUNT = 1
	return cmap.SHARD_COUNT
}()

// protoActor is a Ref as protoactor sees it: an actor.Mailbox, and the actor.Actor behind it. Only lifecycle messages
// come this way; other messages go straight to the Actor.
type protoActor Ref

// RegisterHandlers implements actor.Mailbox. The library's dispatcher is not used.
func (l *protoActor) RegisterHandlers(invoker actor.MessageInvoker, _ actor.Dispatcher) {
	l.library.invoker = invoker
}

// Start implements actor.Mailbox.
func (l *protoActor) Start() {}

// UserMessageCount implements actor.Mailbox.
func (l *protoActor) UserMessageCount() int { return (*Ref)(l).Waiting() }

// PostUserMessage implements actor.Mailbox. Messages of the library itself are dropped.
func (l *protoActor) PostUserMessage(message any) {
	if m, ok := message.(Message); ok {
		(*Ref)(l).Send(m)
	}
}

// PostSystemMessage implements actor.Mailbox: the actor starts or stops.
func (l *protoActor) PostSystemMessage(message any) { (*Ref)(l).postLifecycle(message) }

// Receive implements actor.Actor. When the actor stops, the questions that it keeps are rejected.
func (l *protoActor) Receive(context actor.Context) {
	if _, stopping := context.Message().(*actor.Stopping); stopping {
		l.actor.Abort(ErrStopped)
	}
}

// failStop is the supervisor. The library's own would restart a failed actor with empty state.
type failStop struct{ system *System }

// HandleFailure implements actor.SupervisorStrategy: it stops the node and the actor.
func (f failStop) HandleFailure(_ *actor.ActorSystem, supervisor actor.Supervisor, child *actor.PID,
	_ *actor.RestartStatistics, reason, message any) {
	f.system.fail(fmt.Errorf("actor %s failed over %T: %v", child.Id, message, reason))
	supervisor.StopChildren(child)
}
