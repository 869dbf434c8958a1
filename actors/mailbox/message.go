package mailbox

import (
	"time"

	"github.com/tasard/tasard/engine"
)

// Message is what actors are sent: a Question, or a struct that embeds OneWay.
type Message interface {
	// Asked reports that a caller waits for an answer.
	Asked() bool
	// Abandoned reports that the caller has stopped waiting, so that the work can be saved.
	Abandoned() bool
	// Reject answers in place of the actor: the mailbox is full, the actor has stopped, its work panicked.
	Reject(*engine.Error)
}

// OneWay is embedded by messages that need no answer. They are never refused: room is reserved for them, because
// their senders have a bounded number of them under way. One that finds no room stops the node.
type OneWay struct{}

// Asked is Message: no caller waits.
func (OneWay) Asked() bool { return false }

// Abandoned is Message.
func (OneWay) Abandoned() bool { return false }

// Reject is Message: there is no caller to tell. A message that holds something for somebody else defines its own.
func (OneWay) Reject(*engine.Error) {}

// Halt tells an actor that the node has stopped: nothing is changed any more.
type Halt struct {
	OneWay
	Why *engine.Error
}

// Answers that are the same for every question. They are shared: do not change them.
var (
	ErrOverloaded = &engine.Error{Code: engine.CodeOverloaded, Message: "too many requests at the moment", RetryAfter: time.Second}
	ErrExpired    = &engine.Error{Code: engine.CodeOverloaded, Message: "the answer took too long", RetryAfter: time.Second}
	ErrStopped    = &engine.Error{Code: engine.CodeDataUnavailable, Message: "the service is stopping", RetryAfter: 2 * time.Second}
)
