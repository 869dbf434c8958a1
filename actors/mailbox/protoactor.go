package mailbox

import (
	"github.com/asynkron/protoactor-go/actor"
	cmap "github.com/orcaman/concurrent-map"
)

// protoactor's process registry consists of 1,024 maps with SHARD_COUNT parts each. With the default of 32 parts, the
// maps take 2.7 MiB and nearly half of the start-up time. The registry is used only when an actor starts or stops, so
// one part is enough. SHARD_COUNT is exported to be set; no other setting of the library is changed.
var _ = func() int {
	cmap.SHARD_COUNT = 1
	return cmap.SHARD_COUNT
}()

// protoActor is a Ref with the methods of protoactor's actor.Mailbox and actor.Actor. As a mailbox it queues messages
// and passes them to protoactor's invoker. The invoker then calls Receive.
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

// PostSystemMessage implements actor.Mailbox. The only such message is Started, during Spawn, because no other code has
// the PID. Ref.deliver recovers all panics, so protoactor's supervisor never restarts an actor with empty state.
func (p *protoActor) PostSystemMessage(message any) { p.life.invoker.InvokeSystemMessage(message) }

// Receive implements actor.Actor. Ref.deliver recovers its panics.
func (p *protoActor) Receive(context actor.Context) {
	if m, ok := context.Message().(Message); ok {
		p.actor.Receive(m)
	}
}
