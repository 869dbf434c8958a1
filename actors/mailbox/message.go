package mailbox

import (
	"time"

	"github.com/tasard/tasard/engine"
)

// Message is a message to an actor: a Request, or a struct that embeds OneWay.
type Message interface {
	// Asked reports whether a caller waits for an answer.
	IsRequest() bool
	// Abandoned reports whether the caller has stopped waiting. The message need not be handled then.
	Abandoned() bool
	// Reject answers with an error: the mailbox is full, the actor has stopped, or Receive panicked.
	Reject(*engine.Error)
}

// OneWay is embedded by messages that need no answer. Their senders bound how many are under way, and each mailbox
// reserves room for them. A one-way message that finds no room stops the node.
type OneWay struct{}

// Asked implements Message.
func (OneWay) IsRequest() bool { return false }

// Abandoned implements Message.
func (OneWay) Abandoned() bool { return false }

// Reject implements Message. It does nothing; a message that another goroutine waits for must have a Reject of its own.
func (OneWay) Reject(*engine.Error) {}

// Halt tells an actor that the node has stopped. Changes are rejected with Err from then on.
type Halt struct {
	OneWay
	Err *engine.Error
}

// Errors of Reject and Wait. They are shared and must not be changed.
var (
	ErrOverloaded = &engine.Error{Code: engine.CodeOverloaded, Message: "too many requests at the moment", RetryAfter: time.Second}
	ErrExpired    = &engine.Error{Code: engine.CodeOverloaded, Message: "the answer took too long", RetryAfter: time.Second}
	ErrStopped    = &engine.Error{Code: engine.CodeDataUnavailable, Message: "the service is stopping", RetryAfter: 2 * time.Second}
)
