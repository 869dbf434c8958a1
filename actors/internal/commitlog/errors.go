package commitlog

import (
	"errors"
	"time"

	"github.com/tasard/tasard/engine"
)

const retryReadOnly = 30 * time.Second

// ErrPosition says that a journal did not end where its writer thought: somebody else writes to it.
var ErrPosition = errors.New("the journal does not end where it should")

// ReadOnly is the answer to a write that the journal cannot take.
func ReadOnly(cause error) *engine.Error {
	return &engine.Error{
		Code: engine.CodeReadOnly, Message: "the data cannot be changed at the moment", RetryAfter: retryReadOnly, Cause: cause,
	}
}

// TooLarge is the answer to a write that no batch of the journal can hold.
func TooLarge(cause error) *engine.Error {
	return &engine.Error{
		Code: engine.CodePayloadTooLarge, Message: "the refresh is larger than a record can be; hand it over in pieces", Cause: cause,
	}
}
