package mailbox

import (
	"github.com/asynkron/protoactor-go/actor"
	cmap "github.com/orcaman/concurrent-map"
)

// The process registry of the library protoactor-go has 1,024 maps with SHARD_COUNT parts each. With the default of 32
// parts, the maps take 2.7 MiB and nearly half of a node's start-up time. One part is enough, because the registry is
// used only when an actor starts or stops. SHARD_COUNT is meant to be set; nothing else of the library is changed.
var _ = func() int {
	cmap.SHARD_COUNT = 1
	return cmap.SHARD_COUNT
}()

// protoActor is a Ref that implements protoactor's interfaces actor.Mailbox and actor.Actor. As a mailbox it queues
// messages and gives them to protoactor's invoker. As an actor it gets them back with their context.
type protoActor Ref

// RegisterHandlers implements actor.Mailbox. It ignores protoactor's dispatcher.
func (p *protoActor) RegisterHandlers(invoker actor.MessageInvoker, _ actor.Dispatcher) {
	p.life.invoker = invoker
}

// Start implements actor.Mailbox.
func (p *protoActor) Start() {}

// UserMessageCount implements actor.Mailbox.
func (p *protoActor) UserMessageCount() int { return (*Ref)(p).Waiting() }

// PostUserMessage implements actor.Mailbox. It drops messages of protoactor's own types.
func (p *protoActor) PostUserMessage(message any) {
	if m, ok := message.(Message); ok {
		(*Ref)(p).Send(m)
	}
}

// PostSystemMessage implements actor.Mailbox. The only such message is Started, during Spawn: no other code has the
// PID, and Ref.deliver recovers all panics, so that protoactor's supervisor never restarts an actor with empty state.
func (p *protoActor) PostSystemMessage(message any) { p.life.invoker.InvokeSystemMessage(message) }

// Receive implements actor.Actor. A panic goes up to Ref.deliver.
func (p *protoActor) Receive(context actor.Context) {
	if m, ok := context.Message().(Message); ok {
		p.actor.Receive(m)
	}
}
