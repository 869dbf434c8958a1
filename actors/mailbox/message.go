package mailbox

import (
	"time"

	"github.com/tasard/tasard/engine"
)

// Message is what actors are sent: a Question, or a struct that embeds OneWay.
type Message interface {
	// Asked reports whether a caller waits for an answer.
	Asked() bool
	// Abandoned reports whether the caller has stopped waiting, so that the work can be saved.
	Abandoned() bool
	// Reject answers in place of the actor: the mailbox is full, the actor has stopped, or its work panicked.
	Reject(*engine.Error)
}

// OneWay is embedded by messages that need no answer. They are never refused: their senders bound how many are under
// way, and room is reserved for them. One that finds no room stops the node.
type OneWay struct{}

// Asked implements Message.
func (OneWay) Asked() bool { return false }

// Abandoned implements Message.
func (OneWay) Abandoned() bool { return false }

// Reject implements Message. A message that another goroutine waits for must define its own.
func (OneWay) Reject(*engine.Error) {}

// Halt tells an actor that the node has stopped: nothing is changed any more.
type Halt struct {
	OneWay
	Why *engine.Error
}

// Answers that are the same for every question. They are shared and must not be changed.
var (
	ErrOverloaded = &engine.Error{Code: engine.CodeOverloaded, Message: "too many requests at the moment", RetryAfter: time.Second}
	ErrExpired    = &engine.Error{Code: engine.CodeOverloaded, Message: "the answer took too long", RetryAfter: time.Second}
	ErrStopped    = &engine.Error{Code: engine.CodeDataUnavailable, Message: "the service is stopping", RetryAfter: 2 * time.Second}
)
