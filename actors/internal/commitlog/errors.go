package commitlog

import (
	"errors"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/wal"
)

const retryReadOnly = 30 * time.Second

// ErrPosition means that the journal does not end at the expected sequence, because another process has written to it.
var ErrPosition = errors.New("the journal does not end where it should")

// ErrConflict rejects a write that was decided on an outdated state. The owner decides again. Callers do not get this
// error.
var ErrConflict = &engine.Error{
	Code: engine.CodeInternalError, Message: "an internal error", Cause: errors.New("another node changed the same meanwhile"),
}

// ErrNoMajority is the cause of errors while too few nodes can reach each other.
var ErrNoMajority = errors.New("too few nodes of the cluster can reach each other")

// ErrOutcomeUnknown is the error of a change that was in flight when the majority was lost.
var ErrOutcomeUnknown = &engine.Error{
	Code: engine.CodeInternalError, Message: "the change may or may not have been kept; it shows when the nodes reach each other again",
	Cause: ErrNoMajority,
}

// ReadOnly returns the error of a write that the journal cannot accept at present.
func ReadOnly(cause error) *engine.Error {
	return &engine.Error{
		Code: engine.CodeReadOnly, Message: "the node cannot write to its log at the moment, which changes and new quota leases need; try again later", RetryAfter: retryReadOnly, Cause: cause,
	}
}

// TooLarge returns the error of a write that is larger than a batch of the journal.
func TooLarge(cause error) *engine.Error {
	return &engine.Error{
		Code: engine.CodePayloadTooLarge, Message: "the refresh is larger than a record can be; hand it over in pieces", Cause: cause,
	}
}

// writeError converts an error of Append into an error for callers.
func writeError(err error) *engine.Error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, wal.ErrNoSpace):
		return ReadOnly(err)
	case errors.Is(err, wal.ErrLimit):
		return TooLarge(err)
	}
	return &engine.Error{
		Code: engine.CodeInternalError, Message: "the change may or may not have been kept; it shows after the next start", Cause: err,
	}
}
