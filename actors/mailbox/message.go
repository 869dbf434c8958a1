package mailbox

import (
	"time"

	"github.com/tasard/tasard/engine"
)

// Message is a message to an actor: a Request, or a struct that embeds OneWay.
type Message interface {
	// IsRequest reports whether a caller waits for an answer.
	IsRequest() bool
	// Abandoned reports whether the caller's deadline has passed. Such a message need not be handled.
	Abandoned() bool
	// Reject answers with an error, because the mailbox is full, the actor has stopped, or Receive panicked.
	Reject(*engine.Error)
}

// OneWay is embedded by messages that have no answer. Their senders limit how many are sent but not yet handled. The
// room that a mailbox reserves for them (Kind.Reserve) therefore suffices. If there is no room, the node stops.
type OneWay struct{}

// IsRequest implements Message.
func (OneWay) IsRequest() bool { return false }

// Abandoned implements Message.
func (OneWay) Abandoned() bool { return false }

// Reject implements Message. It does nothing. If a goroutine waits until the message is handled, the message type must
// override Reject.
func (OneWay) Reject(*engine.Error) {}

// NodeFailed tells an actor that the node has failed. The actor rejects all later changes with Err.
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
