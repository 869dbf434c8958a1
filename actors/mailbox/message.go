package mailbox

import (
	"time"

	"github.com/tasard/tasard/engine"
)

// Message is a message to an actor: a Request, or a struct that embeds OneWay.
type Message interface {
	// IsRequest reports whether a caller waits for an answer.
	IsRequest() bool
	// Abandoned reports whether the caller's deadline has passed. The actor may skip such a message.
	Abandoned() bool
	// Reject answers with an error, because the mailbox is full, the actor has stopped, or Receive panicked.
	Reject(*engine.Error)
}

// OneWay is embedded in messages without an answer. Senders must limit the number of their unhandled messages to the
// room reserved in each mailbox (Kind.Reserve): if a mailbox has no room, the node stops.
type OneWay struct{}

// IsRequest implements Message.
func (OneWay) IsRequest() bool { return false }

// Abandoned implements Message.
func (OneWay) Abandoned() bool { return false }

// Reject implements Message and does nothing. Override it in a message type if a goroutine waits until the message is
// handled.
func (OneWay) Reject(*engine.Error) {}

// NodeFailed tells an actor that the node has failed. From then on the actor rejects all changes with Err.
type NodeFailed struct {
	OneWay
	Err *engine.Error
}

// Errors of Message.Reject and Request.Wait. They are shared values: do not modify them.
var (
	ErrOverloaded = &engine.Error{Code: engine.CodeOverloaded, Message: "too many requests at the moment", RetryAfter: time.Second}
	ErrExpired    = &engine.Error{Code: engine.CodeOverloaded, Message: "the answer took too long", RetryAfter: time.Second}
	ErrStopped    = &engine.Error{Code: engine.CodeDataUnavailable, Message: "the service is stopping", RetryAfter: 2 * time.Second}
)
