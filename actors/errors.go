package actors

import (
	"errors"
	"time"

	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/engine"
)

// ErrUnknownRecord says that the log or a snapshot holds something that only a newer program understands.
// Nothing was changed.
var ErrUnknownRecord = record.ErrUnknown

// ErrPosition says that a journal did not end where its writer thought: somebody else writes to it.
var ErrPosition = errors.New("the journal does not end where it should")

// errEmpty is shared: do not change it.
var errEmpty = &engine.Error{Code: engine.CodeDataUnavailable, Message: "no rates have been published yet", RetryAfter: retryEmpty}

// When another try makes sense.
const (
	retryEmpty     = 60 * time.Second // E4
	retryReadOnly  = 30 * time.Second
	retryReplayMin = time.Second // E4
	retryReplayMax = 30 * time.Second
	retryReplay    = 2 * time.Second // before anything is known of the pace
)

// readOnly is the answer to a write that the journal cannot take.
func readOnly(cause error) *engine.Error {
	return &engine.Error{
		Code: engine.CodeReadOnly, Message: "the data cannot be changed at the moment", RetryAfter: retryReadOnly, Cause: cause,
	}
}

// tooLarge is the answer to a write that no batch of the journal can hold.
func tooLarge(cause error) *engine.Error {
	return &engine.Error{
		Code: engine.CodePayloadTooLarge, Message: "the refresh is larger than a record can be; hand it over in pieces", Cause: cause,
	}
}
